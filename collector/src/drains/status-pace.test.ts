import { expect, test } from "vitest";
import { StatusPace } from "./status-pace.ts";

test("a status is written every ten seconds where a condition changed, and once a minute where only numbers did", () => {
  let now = 0;
  const pace = new StatusPace({ monotonic: () => now });
  const at = (ms: number, isChange: boolean) => {
    now = ms;
    return pace.take("u1", isChange);
  };
  expect(at(0, false)).toBe(true);
  expect([at(9_999, true), at(10_000, true)]).toEqual([false, true]);
  expect([at(69_999, false), at(70_000, false)]).toEqual([false, true]);
  expect(pace.take("u2", false)).toBe(true);
});
