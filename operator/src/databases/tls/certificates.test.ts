import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { certify, makeAuthority, SERVER_DAYS, serialOf } from "./certificates.ts";
import { certificateNames } from "./secret.ts";

const now = new Date();
const names = certificateNames("shop", "slipway-org-alpha", "192.0.2.1");

/** Whether a client that trusts `ca` believes the server under a name; the reason when it does not. */
async function handshake(
  server: { certificate: string; key: string },
  ca: string,
  servername: string,
): Promise<string> {
  const listener = createServer({ cert: server.certificate, key: server.key }, (socket) => socket.end());
  listener.on("tlsClientError", () => {});
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  try {
    return await new Promise<string>((resolve) => {
      const socket: TLSSocket = connect({ host: "127.0.0.1", port, servername, ca }, () => {
        socket.destroy();
        resolve("trusted");
      });
      socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  } finally {
    listener.close();
  }
}

test("a certificate is trusted under every name by clients that trust the authority", async () => {
  const authority = await makeAuthority(now);
  const server = await certify(authority, names, now);
  for (const name of [
    "shop",
    "shop.slipway-org-alpha.svc",
    "shop-1.shop-nodes.slipway-org-alpha.svc",
    "localhost",
  ]) {
    expect(await handshake(server, authority.certificate, name), name).toBe("trusted");
  }
  expect(await handshake(server, authority.certificate, "other.slipway-org-alpha.svc")).toBe(
    "ERR_TLS_CERT_ALTNAME_INVALID",
  );
  const other = await makeAuthority(now);
  expect(await handshake(server, other.certificate, "shop")).not.toBe("trusted");
});

test("its serial and its time can be read from it", async () => {
  const authority = await makeAuthority(now);
  const { certificate, serial, notBefore, notAfter } = await certify(authority, names, now);
  expect(serialOf(certificate)).toBe(serial);
  expect(notBefore < now).toBe(true);
  expect(Math.round((notAfter.getTime() - now.getTime()) / 86_400_000)).toBe(SERVER_DAYS);
});

test("a long name is no obstacle", async () => {
  const id = `p${"a".repeat(39)}`;
  const authority = await makeAuthority(now);
  const server = await certify(authority, certificateNames(id, "slipway-org-alpha"), now);
  expect(await handshake(server, authority.certificate, `${id}.slipway-org-alpha.svc`)).toBe("trusted");
});
