/**
 * A registry on loopback for one build: it forwards reads of manifests and blobs to one registry, with a token, which clients
 * such as buildah do not support. Its clients can read what the token allows, and nothing else.
 */

import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";

export interface MirrorOptions {
  /** `host` or `host:port` of the registry. */
  host: string;
  /** PEM of its authorities, in place of the public ones. */
  ca?: string;
  token?: string;
}

/** Reads of manifests and blobs, in a repository of plain segments. */
const READ =
  /^\/v2\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*\/(?:manifests|blobs)\/[A-Za-z0-9_][A-Za-z0-9_.+:-]{0,200}$/;
const REQUEST_HEADERS = ["accept", "range", "if-none-match"];
const RESPONSE_HEADERS = [
  "content-type",
  "content-length",
  "content-range",
  "docker-content-digest",
  "docker-distribution-api-version",
  "etag",
  // Blobs stored elsewhere: clients follow it themselves, without the token.
  "location",
];
const TIMEOUT_MS = 60_000;

export interface RegistryMirror {
  /** `127.0.0.1:port`. */
  address: string;
  close(): Promise<void>;
}

export async function startMirror(options: MirrorOptions): Promise<RegistryMirror> {
  const server = createServer((request, response) => handleRequest(options, request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function handleRequest(options: MirrorOptions, request: IncomingMessage, response: ServerResponse): void {
  const { method = "", url = "" } = request;
  request.resume();
  if (method !== "GET" && method !== "HEAD") {
    response.writeHead(405).end();
  } else if (url === "/v2/") {
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  } else if (READ.test(url)) {
    forward(options, request, response);
  } else {
    response.writeHead(404).end();
  }
}

function forward(
  { host, ca, token }: MirrorOptions,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const headers: Record<string, string | string[]> = { host };
  for (const name of REQUEST_HEADERS) {
    const value = request.headers[name];
    if (value !== undefined) {
      headers[name] = value;
    }
  }
  if (token !== undefined) {
    headers.authorization = `Bearer ${token}`;
  }
  const { protocol, hostname, port } = registryUrl(host);
  const send = protocol === "http:" ? httpRequest : httpsRequest;
  const upstream = send({
    hostname,
    port,
    path: request.url,
    method: request.method,
    headers,
    ...(ca === undefined ? {} : { ca }),
    timeout: TIMEOUT_MS,
  });
  const fail = (): void => {
    if (response.headersSent) {
      response.destroy();
    } else {
      response.writeHead(502).end();
    }
  };
  upstream.on("timeout", () => upstream.destroy(new Error("no answer in time")));
  upstream.on("error", fail);
  upstream.on("response", (got) => {
    for (const name of RESPONSE_HEADERS) {
      const value = got.headers[name];
      if (value !== undefined) {
        response.setHeader(name, value);
      }
    }
    response.writeHead(got.statusCode ?? 502);
    pipeline(got, response, () => undefined);
  });
  response.on("close", () => upstream.destroy());
  upstream.end();
}

/** TLS, except for a registry on loopback, as its other clients do. Pure. */
export function registryUrl(host: string): URL {
  const plain = /^(localhost|127\.0\.0\.1|\[::1\])(:|$)/.test(host);
  return new URL(`${plain ? "http" : "https"}://${host}`);
}
