import type { FoundLine } from "@slipway/analytics";
import { expect, test } from "vitest";
import {
  decodeCursor,
  encodeCursor,
  MAX_PAGE_BYTES,
  pageOf,
  type Search,
  searchId,
  searchWindow,
} from "./search.ts";

const line = (text: string): FoundLine => ({
  ...{ at: "1795322529175373603", instance: "p-1", container: "app", file: "0123456789abcdef", offset: 7 },
  ...{ stream: "stdout", level: null, text, size: Buffer.byteLength(JSON.stringify(text)), continues: false },
});

test("a cursor is what it was made of", () => {
  const { at, instance, container, file, offset } = line("");
  const cursor = {
    search: searchId("p", { order: "newest" }),
    window: { from: 1, to: 2 },
    after: { at, instance, container, file, offset },
  };
  expect(decodeCursor(encodeCursor(cursor))).toEqual(cursor);
});

test.each([
  "",
  "x",
  "W10",
  Buffer.from('["0123456789abcdef",1,2,"9223372036854775808","p","app","0123456789abcdef",7]').toString(
    "base64url",
  ),
  Buffer.from('["0123456789abcdef",1,2,"1","p","app","0123456789abcdeg",7]').toString("base64url"),
  Buffer.from('["0123456789abcdef",1,2,"1","p","app","0123456789abcdef",-1]').toString("base64url"),
  Buffer.from('["0123456789abcde",1,2,"1","p","app","0123456789abcdef",1]').toString("base64url"),
  Buffer.from('["0123456789abcdef",1,8640000000000001,"1","p","app","0123456789abcdef",1]').toString(
    "base64url",
  ),
])("%j is no cursor", (text) => {
  expect(decodeCursor(text)).toBeUndefined();
});

test("a page ends at its limit, or before the line that is too much", () => {
  const found = ["a", "b", "c"].map(line);
  expect(pageOf(found, 3)).toEqual({ lines: found, isLast: true });
  expect(pageOf(found, 2)).toEqual({ lines: found.slice(0, 2), isLast: false });
  const half = line("x".repeat(MAX_PAGE_BYTES / 2 - 2));
  expect(pageOf([half, half, line("y")], 200)).toEqual({ lines: [half, half], isLast: false });
  const whole = line("x".repeat(2 * MAX_PAGE_BYTES));
  expect(pageOf([whole, half], 200)).toEqual({ lines: [whole], isLast: false });
});

test("each part of a search makes another one", () => {
  const searches: [string, Search][] = [
    ["p", { order: "newest" }],
    ["q", { order: "newest" }],
    ["p", { order: "oldest" }],
    ["p", { order: "newest", q: "a" }],
    ["p", { order: "newest", level: "a" }],
    ["p", { order: "newest", instance: "a" }],
  ];
  expect(new Set(searches.map(([project, one]) => searchId(project, one))).size).toBe(searches.length);
});

const search = searchId("p", { order: "newest" });
const now = new Date("2026-11-22T12:00:00Z");
const at = (time: string) => Date.parse(`2026-11-${time}:00Z`);

test.each([
  [{}, at("22T11:00"), at("22T12:00")],
  [{ from: "2026-11-22T10:00:00Z" }, at("22T10:00"), at("22T12:00")],
  [{ to: "2026-11-20T10:00:00+02:00" }, at("20T07:00"), at("20T08:00")],
  [{ from: "2026-11-15T12:00:00Z", to: "2026-11-22T13:00:00Z" }, at("15T12:00"), at("22T13:00")],
  // What is kept no longer is left out: a client that asks for all days cannot know the moment of its call.
  [{ from: "2026-11-15T11:59:59.999Z" }, at("15T12:00"), at("22T12:00")],
  [{ from: "0000-01-01T00:00:00Z", to: "2026-11-16T12:00:00Z" }, at("15T12:00"), at("16T12:00")],
  [{ to: "2026-11-15T12:30:00Z" }, at("15T12:00"), at("15T12:30")],
  // The last hour, and what clocks that are ahead wrote.
  [{ to: "2026-11-22T13:00:00Z" }, at("22T11:00"), at("22T13:00")],
  [{ to: "2250-01-01T00:00:00Z" }, at("22T11:00"), at("23T12:00")],
  [{ to: "9999-12-31T23:59:59Z" }, at("22T11:00"), at("23T12:00")],
])("the window of %j", (query, from, to) => {
  expect(searchWindow(query, 7, now)).toEqual({ from, to });
});

test.each([
  [{ to: "2026-11-15T12:00:00Z" }, "less than 7 days ago"],
  [{ from: "2026-11-14T12:00:00Z", to: "2026-11-15T11:00:00Z" }, "less than 7 days ago"],
  [{ from: "2026-11-22T12:00:00Z" }, "must not lie ahead"],
  [{ from: "2026-11-21T12:00:00Z", to: "2026-11-21T12:00:00Z" }, "must be before to"],
])("the window of %j is refused", (query, message) => {
  expect(() => searchWindow(query, 7, now)).toThrow(
    expect.objectContaining({ status: 400, message: expect.stringContaining(message) }),
  );
});

test.each(["9999-12-31T23:59:59Z", "2250-01-01T00:00:00Z"])("a cursor of a window to %s goes on", (to) => {
  const window = searchWindow({ to }, 7, now);
  const { at: time, instance, container, file, offset } = line("");
  const cursor = encodeCursor({ search, window, after: { at: time, instance, container, file, offset } });
  expect(searchWindow({ cursor }, 7, now)).toEqual(window);
});

test("a cursor's window stays, but for what the plan no longer keeps", () => {
  const { at: time, instance, container, file, offset } = line("");
  const after = { at: time, instance, container, file, offset };
  const cursor = encodeCursor({ search, window: { from: at("14T12:00"), to: at("21T12:00") }, after });
  expect(searchWindow({ cursor }, 7, now)).toEqual({ from: at("15T12:00"), to: at("21T12:00") });
});
