/** Headers that are about one connection, not about the request (RFC 9110, section 7.6.1). Pure. */

import type { IncomingMessage } from "node:http";

const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Names and values in turn, as they came, without those of the connection. `X-Forwarded-*` stay as the ingress has set them. */
export function endToEnd({ rawHeaders, headers }: Pick<IncomingMessage, "rawHeaders" | "headers">): string[] {
  const named = String(headers.connection ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  const left: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? "";
    const lower = name.toLowerCase();
    if (!HOP_BY_HOP.has(lower) && !named.includes(lower)) {
      left.push(name, rawHeaders[index + 1] ?? "");
    }
  }
  return left;
}

/** The headers of a request to an instance. Its length is said in one way, as it was received. */
export function requestHeaders(request: IncomingMessage): string[] {
  const { headers } = request;
  const own = endToEnd(request);
  const kept: string[] = [];
  for (let index = 0; index < own.length; index += 2) {
    // This process has answered it.
    if (own[index]?.toLowerCase() !== "expect") {
      kept.push(own[index] ?? "", own[index + 1] ?? "");
    }
  }
  const isChunked = headers["transfer-encoding"] !== undefined;
  return [...kept, ...(isChunked ? ["transfer-encoding", "chunked"] : []), "connection", "close"];
}

/** The headers of a request for another protocol. */
export function upgradeHeaders(request: IncomingMessage): string[] {
  return [...endToEnd(request), "connection", "Upgrade", "upgrade", request.headers.upgrade ?? ""];
}
