import { type AccessLine, type LineRefusal, requestEvent, type Target, text } from "./access-line.ts";
import { addressOf, clientAddress, type TrustedProxies, UNKNOWN_ADDRESS } from "./client-address.ts";
import { attributesOf, fieldsOf, type Telemetry } from "./otlp-format.ts";

/**
 * Attributes of OpenTelemetry's semantic conventions for HTTP servers, and after each what it was called before they were
 * stable.
 */
const NAMES = {
  method: ["http.request.method", "http.method"],
  status: ["http.response.status_code", "http.status_code"],
  path: ["url.path", "http.target"],
  userAgent: ["user_agent.original", "http.user_agent"],
  peer: ["network.peer.address", "net.sock.peer.addr"],
  client: ["client.address", "http.client_ip"],
  forwardedFor: ["http.request.header.x-forwarded-for"],
  bytesReceived: ["http.request.body.size", "http.request_content_length"],
  bytesSent: ["http.response.body.size", "http.response_content_length"],
  seconds: ["http.server.request.duration"],
} as const;

/** Which object of the cluster the request went by: the namespace's attribute, and the name's. */
const OBJECTS = [
  { kind: "service", namespace: "k8s.namespace.name", name: "k8s.service.name" },
  { kind: "router", namespace: "k8s.namespace.name", name: "k8s.ingress.name" },
  { kind: "service", namespace: "ingress.namespace", name: "ingress.service_name" },
  { kind: "router", namespace: "ingress.namespace", name: "ingress.name" },
] as const;

type Fields = Record<string, unknown>;

/** SPAN_KIND_SERVER: all others are parts of a request, or its other end. */
const SERVER = [2, "2", "SPAN_KIND_SERVER"] as const;

/**
 * Reads a log record or a server's span that describes a request by the semantic conventions. Attributes of the record have
 * precedence over those of its resource; a log record's time is the request's end.
 */
export function readHttpRecord(
  { signal, record, resource }: Telemetry,
  isTrusted: TrustedProxies,
): AccessLine | LineRefusal {
  const [own, shared] = [fieldsOf(record), attributesOf(resource)];
  const fields = { ...shared, ...own };
  const first = (names: readonly string[]) =>
    names.map((name) => fields[name]).find((value) => value !== undefined);
  const isSpan = signal === "traces";
  if (isSpan && !SERVER.some((kind) => kind === record.kind)) {
    return "other";
  }
  const method = text(first(NAMES.method));
  if (method === "" && first(NAMES.status) === undefined) {
    return "other";
  }
  const status = numberOf(first(NAMES.status));
  const end = isSpan
    ? millisecondsOf(record.endTimeUnixNano)
    : (millisecondsOf(record.timeUnixNano) ?? millisecondsOf(record.observedTimeUnixNano));
  const start = isSpan ? millisecondsOf(record.startTimeUnixNano) : undefined;
  const seconds = numberOf(first(NAMES.seconds));
  const latencyMs = start !== undefined && end !== undefined ? end - start : seconds && seconds * 1000;
  if (status === undefined || end === undefined || latencyMs === undefined) {
    return "incomplete";
  }
  const peer = text(first(NAMES.peer));
  const chain = textsOf(first(NAMES.forwardedFor)) || text(first(NAMES.client));
  return {
    target: targetOf(fields, own, shared),
    peer: addressOf(peer || text(first(NAMES.client))) ?? UNKNOWN_ADDRESS,
    event: requestEvent({
      at: Math.floor(Math.round((end - latencyMs) * 1e3) / 1e3),
      status: Math.round(status),
      method,
      path: text(first(NAMES.path)),
      userAgent: textsOf(first(NAMES.userAgent)),
      // Without the address of the peer, the ingress's client address is trusted.
      sourceIp: clientAddress(peer, peer === "" ? text(first(NAMES.client)) : chain, isTrusted),
      bytesReceived: numberOf(first(NAMES.bytesReceived)),
      bytesSent: numberOf(first(NAMES.bytesSent)),
      latencyUs: latencyMs * 1000,
    }),
  };
}

/** By an object of the cluster, which the record names itself or its source does, or by Traefik's names of its own. */
function targetOf(fields: Fields, own: Fields, shared: Fields): Target {
  const traefiks = {
    service: text(fields["traefik.service.name"]),
    router: text(fields["traefik.router.name"]),
    entryPoint: text(fields.entry_point),
  };
  for (const names of [own, shared]) {
    for (const { kind, namespace, name } of OBJECTS) {
      const [space, named] = [text(fields[namespace]), text(names[name])];
      if (space !== "" && named !== "") {
        return { ...traefiks, object: { kind, key: `${space}/${named}` } };
      }
    }
  }
  return traefiks;
}

function textsOf(value: unknown): string {
  return Array.isArray(value) ? value.map(text).join(",") : text(value);
}

function numberOf(value: unknown): number | undefined {
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/**
 * Of nanoseconds since the epoch, to the microsecond: a number holds those of this century to 256 only, and cut off instead of rounded
 * every eighth millisecond would be the one before. 0 says that nobody knows.
 */
function millisecondsOf(nanoseconds: unknown): number | undefined {
  const number = numberOf(nanoseconds);
  return number !== undefined && number > 0 ? Math.round(number / 1e3) / 1e3 : undefined;
}
