import {
  type AccessEvent,
  MAX_PATH_BYTES,
  MAX_USER_AGENT_BYTES,
  METHODS,
  type Method,
} from "@slipway/analytics";
import { addressOf, clientAddress, type TrustedProxies, UNKNOWN_ADDRESS } from "./client-address.ts";
import { routeOf, withoutQuery } from "./route.ts";
import { printable } from "./text.ts";

/** Which of the ingress's own names identifies the project of a request. */
export interface Target {
  /** Name of Traefik's service; empty when the request reached none. */
  service: string;
  /** Name of Traefik's router; empty when there was no route. */
  router: string;
  entryPoint: string;
  /** The Service or the Ingress itself, where it is fields: `namespace/name`. */
  object?: { kind: "service" | "router"; key: string };
}

/** One request as the ingress's log has it, before its project is known. */
export interface AccessLine {
  target: Target;
  /** Who connected to the ingress. */
  peer: string;
  event: Omit<AccessEvent, "organization" | "project">;
}

/** Why a line is no request: `other` is what the ingress says of itself. */
export type LineRefusal = "other" | "not_json" | "incomplete";

/** Fields of Traefik's access log in its JSON form (v3). */
type Fields = Record<string, unknown>;

/** Reads one line of Traefik's JSON log; unknown fields are ignored, a query is never kept. */
export function parseAccessLine(line: string, isTrusted: TrustedProxies): AccessLine | LineRefusal {
  let fields: unknown;
  try {
    fields = JSON.parse(line);
  } catch {
    return "not_json";
  }
  return typeof fields === "object" && fields !== null && !Array.isArray(fields)
    ? readAccessFields(fields as Fields, isTrusted)
    : "not_json";
}

/** The same out of the fields of a line, which is also what Traefik exports over OTLP. */
export function readAccessFields(fields: Fields, isTrusted: TrustedProxies): AccessLine | LineRefusal {
  if (fields.RequestMethod === undefined && fields.DownstreamStatus === undefined) {
    return "other";
  }
  const at = Date.parse(text(fields.StartUTC));
  const status = whole(fields.DownstreamStatus);
  const duration = whole(fields.Duration);
  if (Number.isNaN(at) || status === undefined || duration === undefined) {
    return "incomplete";
  }
  const peer = text(fields.ClientAddr) || text(fields.ClientHost);
  return {
    target: {
      service: text(fields.ServiceName),
      router: text(fields.RouterName),
      entryPoint: text(fields.entryPointName),
    },
    peer: addressOf(peer) ?? UNKNOWN_ADDRESS,
    event: requestEvent({
      at,
      status,
      method: text(fields.RequestMethod),
      path: text(fields.RequestPath),
      userAgent: text(fields["request_User-Agent"]),
      // Traefik puts the header there where one was sent, and the address of who connected otherwise.
      sourceIp: clientAddress(peer, text(fields.ClientAddr) === "" ? "" : text(fields.ClientHost), isTrusted),
      bytesReceived: whole(fields.RequestContentSize),
      bytesSent: whole(fields.DownstreamContentSize),
      // Nanoseconds in the log.
      latencyUs: duration / 1000,
    }),
  };
}

/** The fields of a request as an ingress reports them. */
export interface RequestFields {
  at: number;
  status: number;
  method: string;
  /** With its query, or without. */
  path: string;
  userAgent: string;
  /** As {@link clientAddress} gives it. */
  sourceIp: string;
  bytesReceived: number | undefined;
  bytesSent: number | undefined;
  latencyUs: number;
}

/** What is kept of a request: bounded, and without its query. */
export function requestEvent(fields: RequestFields): AccessLine["event"] {
  const path = withoutQuery(fields.path) || "/";
  const size = (bytes = 0) => Math.max(Math.round(bytes), 0);
  return {
    at: fields.at,
    // Ingresses pass on whatever three digits an application answers with.
    status: Math.min(Math.max(fields.status, 100), 599),
    method: methodOf(fields.method),
    route: routeOf(path),
    path: printable(path, MAX_PATH_BYTES, "\ufffd"),
    userAgent: printable(fields.userAgent, MAX_USER_AGENT_BYTES, " ").trim(),
    sourceIp: fields.sourceIp,
    bytesReceived: size(fields.bytesReceived),
    bytesSent: size(fields.bytesSent),
    latencyUs: size(fields.latencyUs),
  };
}

function methodOf(method: string): Method {
  return METHODS.find((known) => known === method) ?? "OTHER";
}

/** A text, or an empty one for everything else. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A whole number that can be fields exactly; undefined for everything else. */
function whole(value: unknown): number | undefined {
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) ? number : undefined;
}
