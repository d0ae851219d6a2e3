import { isIP, SocketAddress } from "node:net";

/** The methods that are counted by name; every other one counts as `OTHER`. */
export const METHODS = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "CONNECT",
  "TRACE",
  "OTHER",
] as const;

export type Method = (typeof METHODS)[number];

/** Bounds of an event's texts, in bytes of UTF-8: the collector cuts to them before it makes an event. */
export const MAX_PATH_BYTES = 512;
export const MAX_USER_AGENT_BYTES = 256;

/** One request that the ingress has answered for a project. Whole numbers throughout. */
export interface AccessEvent {
  /** Organization's id. */
  organization: string;
  /** Project's id. */
  project: string;
  /** When the request began, in milliseconds since the epoch. */
  at: number;
  /** HTTP status, 100 to 599. */
  status: number;
  method: Method;
  /** The path with what names single things replaced (`routeOf`). */
  route: string;
  /** The path as it was requested, without its query: valid UTF-8, at most {@link MAX_PATH_BYTES}. */
  path: string;
  /** Without control characters, at most {@link MAX_USER_AGENT_BYTES}; empty when none was sent. */
  userAgent: string;
  /** Address of the client, as trusted proxies report it: IPv4 or IPv6 in its usual text. */
  sourceIp: string;
  /** Bytes of the request's body. */
  bytesReceived: number;
  /** Bytes of the answer's body. */
  bytesSent: number;
  /** From the request's beginning to the answer's end, in microseconds. */
  latencyUs: number;
}

/**
 * Events that are inserted together or not at all. The id belongs to these events in this order for good (made of the
 * source file's identity and offsets): it is the insert's deduplication token, and a batch that is sent twice counts once.
 */
export interface EventBatch {
  /** 1 to 200 printable ASCII characters. */
  id: string;
  events: AccessEvent[];
}

/**
 * The one text of an IP address: IPv6 in its shortest form, IPv4 that comes as IPv6 as IPv4, without a zone. Undefined for what is
 * no address. Events and filters have addresses as this gives them.
 */
export function canonicalAddress(text: string): string | undefined {
  const version = isIP(text);
  if (version === 4) {
    return text;
  }
  if (version !== 6) {
    return undefined;
  }
  const address = text.replace(/%.*$/, "");
  const short = new SocketAddress({ address, family: "ipv6" }).address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(short);
  return mapped?.[1] ?? short;
}
