import { expect, test } from "vitest";
import { LogBounds, type LogBoundsOptions } from "./log-bounds.ts";

/** Without a bound of the day, where none is named. */
const boundsOf = (options: Omit<LogBoundsOptions, "organizationBytesPerDay"> & Partial<LogBoundsOptions>) =>
  new LogBounds({ organizationBytesPerDay: Number.POSITIVE_INFINITY, ...options });
const rate = (linesPerSecond: number, bytesPerSecond = 1_000_000) => ({ linesPerSecond, bytesPerSecond });
const admitted = (bounds: LogBounds, project: string, lines: number, at: number, organization = "o1") =>
  Array.from({ length: lines }, () => bounds.admits({ organization, project }, at, 10)).filter(Boolean)
    .length;

test("a project may write so many seconds of its rate in each window of as many seconds", () => {
  const bounds = boundsOf({ project: rate(10), organization: rate(1_000), burstSeconds: 5 });
  expect(admitted(bounds, "p1", 30, 1_000_000)).toBe(30);
  expect(admitted(bounds, "p1", 100, 1_004_999)).toBe(20);
  expect(admitted(bounds, "p1", 100, 1_004_999)).toBe(0);
  expect(admitted(bounds, "p1", 100, 1_005_000)).toBe(50);
  expect(admitted(bounds, "p1", 100, 9_000_000)).toBe(50);
  // Another project has its own.
  expect(admitted(bounds, "p2", 100, 1_000_000)).toBe(50);
});

test("lines that have waited count at the time at which they were written", () => {
  const bounds = boundsOf({ project: rate(10), organization: rate(10), burstSeconds: 1 });
  const late = Array.from({ length: 3_600 }, (_, second) => admitted(bounds, "p1", 10, second * 1_000));
  expect(late.every((lines) => lines === 10)).toBe(true);
});

test("an hour of one instance is kept that is read after the newest line of another", () => {
  const bounds = boundsOf({ project: rate(10), organization: rate(100), burstSeconds: 60 });
  const hour = 3_600_000;
  // A silent instance is at its end sooner than one that writes all of the time, within the rate.
  expect(admitted(bounds, "p1", 1, 2 * hour)).toBe(1);
  const dense = Array.from({ length: 3_600 }, (_, second) =>
    admitted(bounds, "p1", 9, hour + second * 1_000),
  );
  expect(dense.reduce((sum, lines) => sum + lines, 0)).toBe(3_600 * 9);
  expect(admitted(bounds, "p1", 1, 2 * hour + 1_000)).toBe(1);
});

test("bytes count, too, and a clock that is set back and forth gives nothing twice, and takes nothing of what follows", () => {
  const bounds = boundsOf({
    project: rate(1_000, 100),
    organization: rate(1_000, 100),
    burstSeconds: 1,
  });
  const day = 86_400_000;
  expect(admitted(bounds, "p1", 100, 5_000)).toBe(10);
  expect(admitted(bounds, "p1", 100, day)).toBe(10);
  expect(admitted(bounds, "p1", 100, 5_999)).toBe(0);
  expect(admitted(bounds, "p1", 100, 6_000)).toBe(10);
  expect(admitted(bounds, "p1", 100, day)).toBe(0);
});

test("the projects of an organization share its rate, and take nothing of another's", () => {
  const bounds = boundsOf({ project: rate(10), organization: rate(15), burstSeconds: 1 });
  expect(admitted(bounds, "p1", 100, 0)).toBe(10);
  expect(admitted(bounds, "p2", 100, 0)).toBe(5);
  expect(admitted(bounds, "p1", 100, 0, "o2")).toBe(10);
});

test("as many windows as there are, the newest are remembered", () => {
  const bounds = boundsOf({ project: rate(1), organization: rate(1), burstSeconds: 1 });
  for (let second = 0; second < 15_000; second += 1) {
    bounds.admits({ organization: "o1", project: "p1" }, second * 1_000, 10);
  }
  expect(admitted(bounds, "p1", 5, 14_999_000)).toBe(0);
  expect(admitted(bounds, "p1", 5, 0)).toBe(1);
});

test("all that an organization may write in a day is bounded, by the lines' own days", () => {
  const plenty = { project: rate(1e9, 1e9), organization: rate(1e9, 1e9), burstSeconds: 60 };
  const bounds = boundsOf({ ...plenty, organizationBytesPerDay: 1_000 });
  const day = 86_400_000;
  expect(admitted(bounds, "p1", 60, day)).toBe(60);
  expect(admitted(bounds, "p2", 60, 2 * day - 1)).toBe(40);
  expect(admitted(bounds, "p1", 60, 2 * day - 1)).toBe(0);
  expect(admitted(bounds, "p1", 200, 2 * day)).toBe(100);
  // What is read late counts in its own day, and nothing of another organization.
  expect(admitted(bounds, "p1", 60, day)).toBe(0);
  expect(admitted(bounds, "p1", 60, day, "o2")).toBe(60);
});
