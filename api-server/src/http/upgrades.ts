import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { EXEC_PROTOCOL, EXEC_SOCKET_OPTIONS } from "@slipway/controller-runtime";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type WebSocket, WebSocketServer } from "ws";
import { MAX_CLIENT_MESSAGE } from "../exec/frames.ts";

/**
 * WebSockets. A request to become one passes the hooks, the guard and the handler of its route as any other, and is refused as any
 * other; only then its connection changes. Requests to other paths are not asked: their `Upgrade` is ignored, as RFC 9110 allows.
 */

/** A credential as browsers can send it, who set no headers: as Kubernetes has it. */
const BEARER_PROTOCOL = "base64url.bearer.authorization.k8s.io.";
/** The organization of a user's token, likewise. */
const ORGANIZATION_PROTOCOL = "organization.slipway.dev.";
/** What the handshake of a WebSocket is, as RFC 6455 has it. */
const KEY = /^[+/0-9A-Za-z]{22}==$/;
/** The name of a subprotocol: a token of RFC 9110. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Milliseconds until a request must have become a WebSocket, or be refused. */
const HANDSHAKE_MS = 30_000;

/** The connections of requests that may become WebSockets, until they do. */
const pending = new WeakMap<IncomingMessage, { socket: Socket; head: Buffer }>();

const sockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  ...EXEC_SOCKET_OPTIONS,
  maxPayload: MAX_CLIENT_MESSAGE,
  handleProtocols: () => EXEC_PROTOCOL,
});

/**
 * What decides, for Node's server, which requests leave HTTP: WebSockets of these paths.
 * @param paths of routes, with `:name` parameters
 */
export function upgradesOf(paths: readonly string[]): (request: IncomingMessage) => boolean {
  const patterns = paths.map((path) => new RegExp(`^${path.replaceAll(/:[A-Za-z]+/g, "[^/?]+")}(?:\\?|$)`));
  return ({ method, headers, url = "" }) =>
    method === "GET" &&
    headers.upgrade?.toLowerCase() === "websocket" &&
    patterns.some((pattern) => pattern.test(url));
}

/** Routes those requests as all others. */
export function installUpgrades(app: FastifyInstance): void {
  app.server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // Node no longer listens to this connection.
    socket.on("error", () => socket.destroy());
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy());
    const response = new ServerResponse(request);
    // Nothing would read another request.
    response.shouldKeepAlive = false;
    try {
      response.assignSocket(socket);
    } catch {
      // The connection still has the answer to an earlier request, so that a refusal could not be written to it.
      socket.destroy();
      return;
    }
    credentialFromProtocols(request);
    pending.set(request, { socket, head });
    response.once("finish", () => socket.destroySoon());
    app.routing(request, response);
  });
}

/** Whether a request may become a WebSocket of this protocol: what its handshake lacks else is refused by the handler. */
export function isWebSocketRequest({ raw }: FastifyRequest): boolean {
  const { headers } = raw;
  const protocols = protocolsOf(raw);
  return (
    pending.has(raw) &&
    KEY.test(headers["sec-websocket-key"] ?? "") &&
    headers["sec-websocket-version"] === "13" &&
    protocols.includes(EXEC_PROTOCOL) &&
    // `ws` refuses the handshake without it, when the command already runs.
    protocols.every((protocol) => TOKEN.test(protocol)) &&
    new Set(protocols).size === protocols.length
  );
}

/**
 * Makes the request's connection a WebSocket; its reply is over.
 * @returns undefined when the client has disconnected meanwhile
 */
export function acceptWebSocket(request: FastifyRequest, reply: FastifyReply): WebSocket | undefined {
  const connection = pending.get(request.raw);
  reply.hijack();
  if (!connection) {
    return undefined;
  }
  const { socket, head } = connection;
  pending.delete(request.raw);
  reply.raw.detachSocket(socket);
  let accepted: WebSocket | undefined;
  sockets.handleUpgrade(request.raw, socket, head, (opened) => {
    accepted = opened;
  });
  return accepted;
}

/** Headers in place of the subprotocols that carry a credential; a header that is there stays. Neither is answered or logged. */
function credentialFromProtocols(request: IncomingMessage): void {
  const { headers } = request;
  const protocols = protocolsOf(request);
  const carriedBy = (prefix: string) =>
    protocols.find((protocol) => protocol.startsWith(prefix))?.slice(prefix.length);
  const bearer = carriedBy(BEARER_PROTOCOL);
  if (bearer !== undefined && headers.authorization === undefined && headers["x-api-key"] === undefined) {
    headers.authorization = `Bearer ${Buffer.from(bearer, "base64url").toString("latin1")}`;
  }
  const organization = carriedBy(ORGANIZATION_PROTOCOL);
  if (organization !== undefined) {
    headers["x-organization-id"] ??= organization;
  }
}

const protocolsOf = ({ headers }: IncomingMessage): string[] =>
  (headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
