import { expect, it } from "vitest";
import { localDateTime } from "./format.ts";
import { CHOSEN, isoOf, momentsOf, rangeOf, windowOf } from "./log-window.ts";

const now = Date.UTC(2026, 10, 22, 12);
const query = (text: string) => new Map(new URLSearchParams(text));

it.each([
  ["", "3600", { from: "2026-11-22T11:00:00.000Z" }],
  ["range=86400", "86400", { from: "2026-11-21T12:00:00.000Z" }],
  ["range=1", "3600", { from: "2026-11-22T11:00:00.000Z" }],
  ["from=2026-11-20T01:02:03Z&range=86400", CHOSEN, { from: "2026-11-20T01:02:03.000Z" }],
  ["to=2026-11-20T01:02:03Z", CHOSEN, { to: "2026-11-20T01:02:03.000Z" }],
  [
    "from=2026-11-19T00:00:00Z&to=2026-11-20T01:02:03Z",
    CHOSEN,
    { from: "2026-11-19T00:00:00.000Z", to: "2026-11-20T01:02:03.000Z" },
  ],
  ["from=yesterday", "3600", { from: "2026-11-22T11:00:00.000Z" }],
])("the address %j is about %s", (text, range, window) => {
  expect(rangeOf(query(text))).toBe(range);
  expect(windowOf(query(text), now)).toEqual(window);
});

it("moments are the same after an input in the browser's time zone has shown them", () => {
  const from = "2026-11-20T01:02:03.000Z";
  expect(isoOf(localDateTime(new Date(from)))).toBe(from);
  expect(momentsOf(query(""))).toEqual({});
  expect([isoOf(undefined), isoOf("")]).toEqual([undefined, undefined]);
});
