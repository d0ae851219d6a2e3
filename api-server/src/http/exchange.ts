import type { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import ipaddr from "ipaddr.js";
import type { WebSocket } from "ws";

/** One HTTP exchange: the client's address, the handler's answer, and the end of both. */

/** What a handler answers. `json` is serialised already, `body` is not; `content` and `stream` say their type in `headers`. */
export type Answer =
  | { status: number; body: Record<string, unknown>; headers?: Record<string, string> }
  | { status: number; json: string; headers?: Record<string, string> }
  | { status: number; content: string | Buffer; headers: Record<string, string> }
  | { status: number; stream: Readable; headers: Record<string, string> }
  | WebSocketAnswer;

/** The connection becomes a WebSocket. */
export interface WebSocketAnswer {
  status: 101;
  accept: (socket: WebSocket) => void;
  /** In place of it, when the client has disconnected meanwhile. */
  abandon: () => void;
}

/** What runs before a handler, and calls back when it is done. */
export type Hook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void;

/** Maximum characters of a proxy's value in place of an address. */
const LONGEST = 64;

/**
 * What counts as one client: an IPv4 address, or the /64 of an IPv6 one, since a single host may have as many of these as it likes.
 * @param address as `request.ip` gives it; what is no address stays as it is
 */
export function addressGroup(address: string): string {
  if (!address.includes(":") || !ipaddr.isValid(address)) {
    return address.slice(0, LONGEST);
  }
  // An IPv4 address that is mapped into IPv6 comes back as IPv4.
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4") {
    return parsed.toString();
  }
  const network = (parsed as ipaddr.IPv6).parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}

/**
 * Calls back once, when the whole answer has been written to the client's connection, or the client has disconnected. An answer behind
 * another on one connection has no events of its own when the connection breaks: so the connection's count, too.
 */
export function onceOver(request: FastifyRequest, reply: FastifyReply, then: () => void): void {
  const { socket } = request.raw;
  const over = (): void => {
    reply.raw.off("close", over).off("finish", over);
    socket?.off("close", over);
    then();
  };
  reply.raw.once("close", over).once("finish", over);
  socket?.once("close", over);
  if (socket?.destroyed || reply.raw.destroyed) {
    over();
  }
}

/** Runs work with a signal that aborts when the client's connection is closed before the work has ended. */
export async function whileConnected<T>(
  { raw: { socket } }: FastifyRequest,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const gone = new AbortController();
  const abort = () => gone.abort();
  socket.once("close", abort);
  if (socket.destroyed) {
    abort();
  }
  try {
    return await work(gone.signal);
  } finally {
    // The connection may serve other requests.
    socket.off("close", abort);
  }
}
