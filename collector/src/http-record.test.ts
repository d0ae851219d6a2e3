import { expect, test } from "vitest";
import { readHttpRecord } from "./http-record.ts";
import type { LogRecord, Signal, Span } from "./otlp-format.ts";

const END = Date.UTC(2026, 10, 22, 4, 42, 1, 500);
const nanoseconds = (ms: number) => `${ms}000000`;

const valueOfAny = (value: unknown): object => {
  if (Array.isArray(value)) {
    return { arrayValue: { values: value.map(valueOfAny) } };
  }
  if (typeof value === "string") {
    return { stringValue: value };
  }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
};
const attributes = (fields: Record<string, unknown>) =>
  Object.entries(fields).map(([key, value]) => ({ key, value: valueOfAny(value) }));

const request = {
  "http.request.method": "POST",
  "url.path": "/orders/17",
  "url.query": "secret=1",
  "http.response.status_code": 201,
  "user_agent.original": "curl/8",
  "network.peer.address": "10.0.0.1",
  "client.address": "203.0.113.9",
  "http.request.body.size": 12,
  "http.response.body.size": 345,
  "http.server.request.duration": 0.25,
  "k8s.namespace.name": "slipway-org-o1",
  "k8s.ingress.name": "p1",
};

function read(
  fields: Record<string, unknown>,
  { signal = "logs" as Signal, resource = {}, record = {} as LogRecord & Span } = {},
) {
  const complete = { timeUnixNano: nanoseconds(END), ...record, attributes: attributes(fields) };
  const telemetry = { signal, record: complete, resource: { attributes: attributes(resource) } };
  return readHttpRecord(telemetry, (address) => address === "10.0.0.1");
}

// Shows: docs/analytics.md#other-ingresses: method, status | `http.request.method` (`http.method`)
// Shows: docs/analytics.md#other-ingresses: bytes | `http.request.body.size`
// Shows: docs/analytics.md#other-ingresses: a record with the names of the semantic conventions is an
test("a log record describes a request by the semantic conventions", () => {
  expect(read(request)).toEqual({
    target: {
      service: "",
      router: "",
      entryPoint: "",
      object: { kind: "router", key: "slipway-org-o1/p1" },
    },
    peer: "10.0.0.1",
    event: {
      at: END - 250,
      status: 201,
      method: "POST",
      route: "/orders/:number",
      path: "/orders/17",
      userAgent: "curl/8",
      sourceIp: "203.0.113.9",
      bytesReceived: 12,
      bytesSent: 345,
      latencyUs: 250_000,
    },
  });
});

test("a request's moment is its millisecond, though a number cannot hold its nanoseconds", () => {
  const { "http.server.request.duration": _, ...fields } = request;
  const moments = Array.from({ length: 1_000 }, (_, index) => Date.UTC(2026, 10, 24, 13, 17, 6) + index);
  const atOf = (line: ReturnType<typeof read>) => (typeof line === "object" ? line.event.at : line);
  expect(
    moments.map((moment) =>
      atOf(
        read(
          { ...fields, "http.server.request.duration": 0 },
          { record: { timeUnixNano: nanoseconds(moment) } },
        ),
      ),
    ),
  ).toEqual(moments);
  expect(
    moments.map((moment) => {
      const times = { startTimeUnixNano: nanoseconds(moment), endTimeUnixNano: nanoseconds(moment + 40) };
      return atOf(read(fields, { signal: "traces", record: { ...times, kind: 2 } }));
    }),
  ).toEqual(moments);
});

// Shows: docs/analytics.md#other-ingresses: time and latency | a span's start and end; a log record's
// Shows: docs/analytics.md#other-ingresses: a record with the names of the semantic conventions is an
test("a server's span has its own times, and other spans are no requests", () => {
  const { "http.server.request.duration": _, ...fields } = request;
  const record = {
    startTimeUnixNano: `${END - 30}250000`,
    endTimeUnixNano: `${END}000000`,
  };
  const span = (kind: number | string | undefined) =>
    read(fields, { signal: "traces", record: { ...record, kind } });
  for (const kind of [2, "SPAN_KIND_SERVER"]) {
    const line = span(kind);
    expect(line).toMatchObject({ event: { at: END - 30, status: 201 } });
    // Nanoseconds of this century are more than a number's 53 bits.
    if (typeof line === "object") {
      expect(Math.abs(line.event.latencyUs - 29_750)).toBeLessThanOrEqual(1);
    }
  }
  for (const kind of [1, 3, "SPAN_KIND_CLIENT", undefined]) {
    expect(span(kind)).toBe("other");
  }
});

// Shows: docs/analytics.md#other-ingresses: path | `url.path` (`http.target`)
test("names that were used before the conventions were stable are known, as ingress-nginx sends them", () => {
  const fields = {
    "http.method": "GET",
    "http.target": "/a?secret=1",
    "http.status_code": "404",
    "http.user_agent": "old",
    "net.sock.peer.addr": "192.0.2.1",
    "http.server.request.duration": 1,
    "ingress.namespace": "slipway-org-o1",
    "ingress.name": "p1-0a1b2c3d",
  };
  expect(read(fields)).toMatchObject({
    target: { object: { kind: "router", key: "slipway-org-o1/p1-0a1b2c3d" } },
    event: { status: 404, path: "/a", userAgent: "old", sourceIp: "192.0.2.1" },
  });
});

test("the object is the record's before it is its source's, and never the host", () => {
  const { "k8s.namespace.name": _, "k8s.ingress.name": __, ...unnamed } = request;
  const resource = { "k8s.namespace.name": "slipway-ingress", "k8s.service.name": "gateway" };
  const target = (fields: object, from = {}) => {
    const line = read({ ...unnamed, ...fields }, { resource: from });
    return typeof line === "object" ? line.target : line;
  };
  expect(target(request, resource)).toMatchObject({ object: { key: "slipway-org-o1/p1" } });
  expect(target({ "k8s.service.name": "p2" }, { "k8s.namespace.name": "slipway-org-o2" })).toMatchObject({
    object: { kind: "service", key: "slipway-org-o2/p2" },
  });
  const none = { service: "", router: "", entryPoint: "" };
  expect(target({ "server.address": "shop.apps.localhost", "url.full": "https://shop/" })).toEqual(none);
  expect(
    target({ "traefik.service.name": "s@kubernetes", "traefik.router.name": "r", entry_point: "web" }),
  ).toEqual({ service: "s@kubernetes", router: "r", entryPoint: "web" });
});

// Shows: docs/analytics.md#other-ingresses: client | `network.peer.address` (`net.sock.peer.addr`)
test.each([
  ["behind a trusted proxy, who it says", { "client.address": "203.0.113.9" }, "203.0.113.9"],
  [
    "the last of a chain that is no trusted proxy",
    { "client.address": "x", "http.request.header.x-forwarded-for": ["6.6.6.6, 203.0.113.8", "10.0.0.1"] },
    "203.0.113.8",
  ],
  ["who connected, whatever a header says", { "network.peer.address": "198.51.100.1" }, "198.51.100.1"],
  ["the ingress's client, where it names no peer", { "network.peer.address": "" }, "203.0.113.9"],
  ["nobody's", { "network.peer.address": "", "client.address": "" }, "::"],
])("the client is %s", (_, fields, sourceIp) => {
  expect(read({ ...request, ...fields })).toMatchObject({ event: { sourceIp } });
});

test.each([
  ["says nothing of HTTP", { "http.request.method": "", "http.response.status_code": undefined }, "other"],
  ["has no status", { "http.response.status_code": "none" }, "incomplete"],
  ["has no duration", { "http.server.request.duration": "" }, "incomplete"],
])("a record that %s is no request", (_, fields, refusal) => {
  const given = Object.entries({ ...request, ...fields }).filter(([, value]) => value !== undefined);
  expect(read(Object.fromEntries(given))).toBe(refusal);
});

// Shows: docs/analytics.md#other-ingresses: user agent | `user_agent.original` (`http.user_agent`)
test("numbers out of every bound and texts that are none break nothing", () => {
  const line = read({
    ...request,
    "http.response.status_code": 99_999,
    "http.request.method": "BREW",
    "http.request.body.size": -5,
    "http.response.body.size": 1.5,
    "http.server.request.duration": -1,
    "url.path": `/${"x".repeat(5_000)}\u0000`,
    "user_agent.original": ["a\n", "b"],
  });
  expect(line).toMatchObject({
    event: {
      ...{ status: 599, method: "OTHER", bytesReceived: 0, bytesSent: 2, latencyUs: 0 },
      userAgent: "a ,b",
    },
  });
  if (typeof line === "object") {
    expect(Buffer.byteLength(line.event.path)).toBeLessThanOrEqual(512);
  }
});
