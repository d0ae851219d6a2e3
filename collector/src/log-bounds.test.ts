import { expect, test } from "vitest";
import { LogBounds } from "./log-bounds.ts";

const rate = (linesPerSecond: number, bytesPerSecond = 1_000_000) => ({ linesPerSecond, bytesPerSecond });
const admitted = (bounds: LogBounds, project: string, lines: number, at: number, organization = "o1") =>
  Array.from({ length: lines }, () => bounds.admits({ organization, project }, at, 10)).filter(Boolean)
    .length;

test("a project may write so many seconds of its rate in each window of as many seconds", () => {
  const bounds = new LogBounds({ project: rate(10), organization: rate(1_000), burstSeconds: 5 });
  expect(admitted(bounds, "p1", 30, 1_000_000)).toBe(30);
  expect(admitted(bounds, "p1", 100, 1_004_999)).toBe(20);
  expect(admitted(bounds, "p1", 100, 1_004_999)).toBe(0);
  expect(admitted(bounds, "p1", 100, 1_005_000)).toBe(50);
  expect(admitted(bounds, "p1", 100, 9_000_000)).toBe(50);
  // Another project has its own.
  expect(admitted(bounds, "p2", 100, 1_000_000)).toBe(50);
});

test("lines that have waited count at the time at which they were written", () => {
  const bounds = new LogBounds({ project: rate(10), organization: rate(10), burstSeconds: 1 });
  const late = Array.from({ length: 3_600 }, (_, second) => admitted(bounds, "p1", 10, second * 1_000));
  expect(late.every((lines) => lines === 10)).toBe(true);
});

test("an hour of one instance is kept that is read after the newest line of another", () => {
  const bounds = new LogBounds({ project: rate(100), organization: rate(1_000), burstSeconds: 60 });
  const hour = 3_600_000;
  // A silent instance is at its end sooner than one that writes all of the time, within the rate.
  expect(admitted(bounds, "p1", 1, 2 * hour)).toBe(1);
  const dense = Array.from({ length: 3_600 }, (_, second) =>
    admitted(bounds, "p1", 90, hour + second * 1_000),
  );
  expect(dense.reduce((sum, lines) => sum + lines, 0)).toBe(3_600 * 90);
  expect(admitted(bounds, "p1", 1, 2 * hour + 1_000)).toBe(1);
});

test("bytes count, too, and a clock that is set back and forth gives nothing twice, and takes nothing of what follows", () => {
  const bounds = new LogBounds({
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
  const bounds = new LogBounds({ project: rate(10), organization: rate(15), burstSeconds: 1 });
  expect(admitted(bounds, "p1", 100, 0)).toBe(10);
  expect(admitted(bounds, "p2", 100, 0)).toBe(5);
  expect(admitted(bounds, "p1", 100, 0, "o2")).toBe(10);
});

test("as many windows as there are, the newest are remembered", () => {
  const bounds = new LogBounds({ project: rate(1), organization: rate(1), burstSeconds: 1 });
  for (let second = 0; second < 30_000; second += 1) {
    bounds.admits({ organization: "o1", project: "p1" }, second * 1_000, 10);
  }
  expect(admitted(bounds, "p1", 5, 29_999_000)).toBe(0);
  expect(admitted(bounds, "p1", 5, 0)).toBe(1);
});
