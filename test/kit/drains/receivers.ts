/** Receivers of log drains on loopback, certified by an authority of their own, that do as a test says. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type TLSSocket } from "node:tls";
import { gunzipSync } from "node:zlib";
import { ensureAuthority, ensureCertificate } from "../../../hack/cluster/certificates.ts";
import { startHttpsServer } from "../git/https-server.ts";

/** What an OTLP receiver got in one request. */
export interface OtlpRequest {
  headers: Record<string, string | string[] | undefined>;
  path: string;
  body: {
    resourceLogs: {
      resource: { attributes: { key: string; value: { stringValue?: string } }[] };
      scopeLogs: { logRecords: { body: { stringValue: string } }[] }[];
    }[];
  };
}

/** What a receiver answers: a status, with a body and headers; undefined: nothing. */
export interface OtlpAnswer {
  status: number;
  body?: string;
  headers?: Record<string, string>;
}

/** Starts a receiver of OTLP over HTTPS; what it took is in `texts`, whatever it answers in `requests`. */
export async function startOtlpReceiver(
  answer: (request: OtlpRequest) => OtlpAnswer | undefined = () => ({ status: 200, body: "{}" }),
  address = "127.0.0.1",
) {
  const requests: OtlpRequest[] = [];
  const texts: string[] = [];
  const server = await startHttpsServer(
    (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const got: OtlpRequest = {
          headers: request.headers,
          path: request.url ?? "",
          body: JSON.parse(gunzipSync(Buffer.concat(chunks)).toString("utf8")),
        };
        requests.push(got);
        const answered = answer(got);
        if (answered === undefined) {
          return;
        }
        if (answered.status === 200) {
          texts.push(...textsOf(got));
        }
        response.writeHead(answered.status, { "content-type": "application/json", ...answered.headers });
        response.end(answered.body ?? "{}");
      });
    },
    ["DNS:localhost", `IP:${address}`],
    address,
  );
  return { ...server, requests, texts };
}

export const textsOf = ({ body }: OtlpRequest): string[] =>
  body.resourceLogs.flatMap(({ scopeLogs }) =>
    scopeLogs.flatMap(({ logRecords }) => logRecords.map((record) => record.body.stringValue)),
  );

/** What a receiver of syslog does with a connection: `cut` ends it while it reads, `away` before. */
export type SyslogBehaviour = "take" | "hang" | "cut" | "away";

/** Starts a receiver of syslog over TLS; `messages` has what it read to the end of a connection. */
export async function startSyslogReceiver(
  behaviour: () => SyslogBehaviour = () => "take",
  address = "127.0.0.1",
) {
  const folder = await mkdtemp(join(tmpdir(), "slipway-syslog-"));
  const authority = await ensureAuthority(folder, "authority");
  const pair = await ensureCertificate(folder, "server", authority, {
    commonName: "server",
    altNames: ["DNS:localhost", `IP:${address}`],
  });
  const [cert, key, ca] = await Promise.all(
    [pair.cert, pair.key, authority.cert].map((file) => readFile(file, "utf8")),
  );
  await rm(folder, { recursive: true });
  const messages: string[] = [];
  const sockets = new Set<TLSSocket>();
  const behaviours = new Map<number | undefined, SyslogBehaviour>();
  const server = createServer({ cert, key }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    const chunks: Buffer[] = [];
    const does = behaviours.get(socket.remotePort);
    if (does === "hang") {
      socket.pause();
      return;
    }
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if (does === "cut") {
        socket.destroy();
      }
    });
    socket.on("end", () => messages.push(...messagesOf(Buffer.concat(chunks))));
  });
  server.on("connection", (socket: Socket) => {
    const does = behaviour();
    behaviours.set(socket.remotePort, does);
    if (does === "away") {
      socket.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    for (const socket of sockets) {
      socket.destroy();
    }
    await new Promise((resolve) => server.close(resolve));
  };
  return { port, host: `localhost:${port}`, ca: ca as string, messages, close };
}

/** Messages of frames, each with its length before it. @throws Error for what is no frame */
export function messagesOf(bytes: Buffer): string[] {
  const messages: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(" ", at);
    const length = Number(bytes.subarray(at, space).toString("latin1"));
    if (space === -1 || !Number.isSafeInteger(length) || length === 0) {
      throw new Error(`no frame at ${at}`);
    }
    messages.push(bytes.subarray(space + 1, space + 1 + length).toString("utf8"));
    at = space + 1 + length;
  }
  return messages;
}

/** The text of a message. */
export const messageText = (message: string): string => message.replace(/^.*?\] \uFEFF?/s, "");
