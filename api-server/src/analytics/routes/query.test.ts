import { describe, expect, it } from "vitest";
import { filterOf, networkQuery, requestedWindow } from "./query.ts";

const now = new Date("2026-11-21T12:00:00Z");
const parse = (query: Record<string, string>) => networkQuery.safeParse(query);
const broken = (query: Record<string, string>) =>
  parse(query).error?.issues.map(({ path }) => path.join("."));
const window = (query: Record<string, string>) => requestedWindow(networkQuery.parse(query), now);

describe("the window", () => {
  it("is the last hour by default", () => {
    expect(window({})).toEqual({ rangeMs: 3_600_000 });
  });

  it("must not be in the future, its end may", () => {
    expect(() => window({ from: "2026-11-21T12:00:00Z" })).toThrow(/from/);
    expect(() => window({ from: "2026-11-22T00:00:00Z", to: "2026-11-23T00:00:00Z" })).toThrow(/from/);
    const to = "2026-11-21T13:00:00Z";
    expect(window({ from: "2026-11-21T11:00:00Z", to })).toEqual({
      from: +now - 3_600_000,
      to: +now + 3_600_000,
    });
  });

  // Shows: docs/analytics.md#the-api: `range_seconds`: 300, 3600, 21600, 86400, 604800
  it.each(["300", "3600", "21600", "86400", "604800"])("may have %s seconds", (range_seconds) => {
    expect(window({ range_seconds })).toEqual({ rangeMs: Number(range_seconds) * 1000 });
  });

  // Shows: docs/analytics.md#the-api: `from`, `to`: ISO 8601 with a zone, to the millisecond; `to` is
  it("may be given by its ends, in any zone", () => {
    expect(window({ from: "2026-11-21T10:00:00.250+02:00", to: "2026-11-21T09:00:00Z" })).toEqual({
      from: Date.UTC(2026, 10, 21, 8, 0, 0, 250),
      to: Date.UTC(2026, 10, 21, 9),
    });
    expect(window({ from: "2026-11-21T11:00:00Z" })).toEqual({ from: +now - 3_600_000, to: +now });
  });

  // Shows: docs/analytics.md#the-api: 400 `VALIDATION_FAILED`: each wrong parameter is named; `from` not
  it.each([
    [{ range_seconds: "60" }, ["range_seconds"]],
    [{ range_seconds: "300.0" }, ["range_seconds"]],
    [{ range_seconds: "300", from: "2026-11-21T10:00:00Z" }, ["range_seconds"]],
    [{ from: "yesterday" }, ["from"]],
    [{ from: "2026-11-21 10:00:00" }, ["from"]],
    [{ to: "2026-11-21T10:00:00Z" }, ["from"]],
    [{ from: "2026-11-21T10:00:01Z", to: "2026-11-21T10:00:00Z" }, ["from"]],
    [{ from: "2026-11-21T10:00:00Z", to: "2026-11-21T10:00:00Z" }, ["from"]],
    [{ from: "2026-11-21T10:00:00Z", to: "x", page: "0" }, ["to", "page"]],
  ])("%j is refused, with every field that is wrong", (query, fields) => {
    expect(broken(query as Record<string, string>)?.sort()).toEqual(fields.sort());
  });

  // Shows: docs/analytics.md#the-api: the same for a window that begins more than eight days ago, is
  it.each([
    [{ from: "2026-11-13T11:59:59Z", to: "2026-11-14T12:00:00Z" }, "from"],
    [{ from: "2026-11-20T12:00:00Z", to: "2026-11-29T12:00:00Z" }, "to"],
    [{ from: "2026-11-21T12:00:00Z" }, "from"],
  ])("%j is refused, for what is kept", (query, field) => {
    expect(() => window(query as Record<string, string>)).toThrow(
      expect.objectContaining({ status: 400, extra: { errors: [expect.objectContaining({ field })] } }),
    );
  });
});

describe("the filters", () => {
  // Shows: docs/analytics.md#the-api: `source_ip`: any text of the address
  it("are numbers and addresses as events have them", () => {
    const query = { status_code: "404", status_class: "4xx", source_ip: "2001:DB8:0::1", path: "/a" };
    expect(filterOf(networkQuery.parse(query))).toEqual({
      statusCode: 404,
      statusClass: 4,
      sourceIp: "2001:db8::1",
      path: "/a",
    });
    expect(filterOf(networkQuery.parse({ source_ip: "::ffff:192.0.2.1" })).sourceIp).toBe("192.0.2.1");
  });

  it.each([
    ["status_code", "99"],
    ["status_code", "2xx"],
    ["status_class", "1xx"],
    ["source_ip", "example.com"],
    ["source_ip", "1.2.3.4/8"],
    ["path", ""],
    ["path", "/".repeat(513)],
    ["page", "0"],
    ["page", "1.5"],
    ["limit", "0"],
    ["limit", "51"],
    ["unknown", "1"],
  ])("%s is no %s", (name, value) => {
    expect(parse({ [name]: value }).success).toBe(false);
  });

  // Shows: docs/analytics.md#the-api: `page` from 1, `limit` 5, at most 50; a page after the last is
  it("have a first page of five", () => {
    expect(networkQuery.parse({})).toMatchObject({ page: 1, limit: 5 });
  });
});
