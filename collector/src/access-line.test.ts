import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AccessLine, parseAccessLine } from "./access-line.ts";
import { trustedProxies } from "./client-address.ts";

const isTrusted = trustedProxies(["10.244.0.0/22"]);
/** As Traefik 3.6 wrote it. */
const line = {
  ClientAddr: "10.244.0.1:37354",
  ClientHost: "10.244.0.1",
  ClientPort: "37354",
  ClientUsername: "-",
  DownstreamContentSize: 48,
  DownstreamStatus: 200,
  Duration: 7492820750,
  OriginContentSize: 48,
  OriginDuration: 7492490508,
  OriginStatus: 200,
  Overhead: 330242,
  RequestAddr: "shop-01234567.apps.localhost:8080",
  RequestContentSize: 12,
  RequestCount: 7,
  RequestHost: "shop-01234567.apps.localhost",
  RequestMethod: "DELETE",
  RequestPath: "/v1/things/42?token=secret",
  RequestPort: "8080",
  RequestProtocol: "HTTP/1.1",
  RequestScheme: "http",
  RetryAttempts: 0,
  RouterName: "slipway-org-o1-p1-shop-01234567-apps-localhost@kubernetes",
  ServiceName: "slipway-org-o1-p1-http@kubernetes",
  StartUTC: "2026-11-22T04:42:01.682042547Z",
  entryPointName: "web",
  level: "info",
  msg: "",
  "request_User-Agent": "curl/8.5.0",
  time: "2026-11-22T04:42:09Z",
};

const read = (fields: object) => parseAccessLine(JSON.stringify(fields), isTrusted);
const event = (changes: object) => (read({ ...line, ...changes }) as AccessLine).event;

test("a line of Traefik's becomes an event, without the query", () => {
  expect(read(line)).toEqual({
    target: {
      service: "slipway-org-o1-p1-http@kubernetes",
      router: "slipway-org-o1-p1-shop-01234567-apps-localhost@kubernetes",
      entryPoint: "web",
    },
    peer: "10.244.0.1",
    event: {
      at: Date.UTC(2026, 10, 22, 4, 42, 1, 682),
      status: 200,
      method: "DELETE",
      route: "/v1/things/:number",
      path: "/v1/things/42",
      userAgent: "curl/8.5.0",
      sourceIp: "10.244.0.1",
      bytesReceived: 12,
      bytesSent: 48,
      latencyUs: 7492821,
    },
  });
});

describe("fields", () => {
  test("a request that was answered before it reached a service names its router alone", () => {
    const { ServiceName: _, ...refused } = line;
    expect((read(refused) as AccessLine).target).toMatchObject({ service: "", router: line.RouterName });
  });

  test("the client is whom trusted proxies name", () => {
    const forwarded = { ClientHost: "1.2.3.4, 203.0.113.9" };
    expect(event(forwarded).sourceIp).toBe("203.0.113.9");
    expect(event({ ...forwarded, ClientAddr: "198.51.100.1:1" }).sourceIp).toBe("198.51.100.1");
    expect(event({ ClientHost: "<script>" }).sourceIp).toBe("10.244.0.1");
  });

  test("texts are bounded and printable", () => {
    const wild = event({
      RequestPath: `/${"é".repeat(5_000)}?q=1`,
      "request_User-Agent": `a\u0000\n\u001b${"x".repeat(9_000)}`,
      RequestMethod: "BREW",
    });
    expect(Buffer.byteLength(wild.path)).toBeLessThanOrEqual(512);
    expect(wild.userAgent).toBe(`a   ${"x".repeat(252)}`);
    expect(wild.method).toBe("OTHER");
    expect(wild.route).toBe("/:long");
  });

  test("what is missing is empty or zero", () => {
    const { RequestPath, RequestContentSize, DownstreamContentSize, ...rest } = line;
    const { "request_User-Agent": _, ...bare } = rest;
    expect((read(bare) as AccessLine).event).toMatchObject({
      path: "/",
      route: "/",
      userAgent: "",
      bytesReceived: 0,
      bytesSent: 0,
    });
  });

  test("numbers stay in their bounds", () => {
    expect(event({ DownstreamStatus: 999, DownstreamContentSize: -1, Duration: -5 })).toMatchObject({
      status: 599,
      bytesSent: 0,
      latencyUs: 0,
    });
    expect(event({ DownstreamStatus: 0 }).status).toBe(100);
  });
});

test.each([
  ["{", "not_json"],
  ["[]", "not_json"],
  ["null", "not_json"],
  ['"text"', "not_json"],
  ["", "not_json"],
  ['{"level":"info","message":"Configuration loaded"}', "other"],
  [JSON.stringify({ ...line, StartUTC: "yesterday" }), "incomplete"],
  [JSON.stringify({ ...line, Duration: 1.5 }), "incomplete"],
  [JSON.stringify({ ...line, DownstreamStatus: null }), "incomplete"],
])("%s is refused: %s", (text, reason) => {
  expect(parseAccessLine(text, isTrusted)).toBe(reason);
});

test("no line breaks it, whatever its fields hold", () => {
  const value = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.integer(),
    fc.double(),
    fc.constant(null),
    fc.object(),
  );
  const wild = fc.record(Object.fromEntries(Object.keys(line).map((key) => [key, value])), {
    requiredKeys: [],
  });
  fc.assert(
    fc.property(wild, (fields) => {
      const parsed = read({ ...line, ...fields });
      if (typeof parsed === "string") {
        return;
      }
      expect(Buffer.byteLength(parsed.event.path)).toBeLessThanOrEqual(512);
      expect(parsed.event.path).not.toContain("?");
      expect(Buffer.byteLength(parsed.event.userAgent)).toBeLessThanOrEqual(256);
      expect(parsed.event.sourceIp).toMatch(/^[0-9a-f.:]+$/);
      for (const key of ["at", "status", "bytesReceived", "bytesSent", "latencyUs"] as const) {
        expect(Number.isSafeInteger(parsed.event[key])).toBe(true);
      }
    }),
  );
});
