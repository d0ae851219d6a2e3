import { expect, test } from "vitest";
import { type Acknowledged, longestGap, lostRows, secondPrimaries } from "./acknowledged.ts";

const row = (id: number, sentAt: number, at: number, term: number): Acknowledged => ({
  id,
  sentAt,
  at,
  term,
  by: `server-${term}`,
});

test("acknowledged rows that are not there are lost", () => {
  expect(lostRows([row(1, 0, 1, 1), row(2, 2, 3, 1)], new Set([2, 3]))).toEqual([1]);
});

test("a row of an earlier primary that was sent before a later one answered is no second primary", () => {
  expect(secondPrimaries([row(1, 0, 10, 1), row(2, 5, 8, 2), row(3, 9, 12, 2)])).toEqual([]);
});

test("a row that an earlier primary takes after a later one has answered is a second primary's", () => {
  const late = row(3, 9, 30, 1);
  expect(secondPrimaries([row(1, 0, 4, 1), row(2, 5, 8, 2), late])).toEqual([late]);
});

test("the longest gap is between two acknowledged rows", () => {
  expect(longestGap([row(1, 0, 10, 1), row(3, 30, 45, 2), row(2, 11, 20, 1)])).toBe(25);
  expect(longestGap([])).toBe(0);
});
