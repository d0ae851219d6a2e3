/** HTTPS servers on loopback, certified by an authority of their own. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureAuthority, ensureCertificate } from "../../../hack/cluster/certificates.ts";

export interface TestServer {
  /** `https://localhost:port`. */
  url: string;
  /** `localhost:port`, as configuration allows it. */
  host: string;
  port: number;
  /** PEM of the authority. */
  ca: string;
  /** Connections so far. */
  connections: () => number;
  close: () => Promise<void>;
}

/**
 * @param names what the certificate is for, as openssl writes it
 * @param address to listen on
 */
export async function startHttpsServer(
  listener: RequestListener,
  names: string[] = ["DNS:localhost"],
  address = "127.0.0.1",
): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), "slipway-git-"));
  const authority = await ensureAuthority(folder, "authority");
  const pair = await ensureCertificate(folder, "server", authority, {
    commonName: "server",
    altNames: names,
  });
  const [cert, key, ca] = await Promise.all(
    [pair.cert, pair.key, authority.cert].map((file) => readFile(file, "utf8")),
  );
  await rm(folder, { recursive: true });
  const server = createServer({ cert, key }, listener);
  let connections = 0;
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    url: `https://localhost:${port}`,
    host: `localhost:${port}`,
    port,
    ca: ca as string,
    connections: () => connections,
    close,
  };
}
