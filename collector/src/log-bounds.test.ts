import { expect, test } from "vitest";
import { LogBounds } from "./log-bounds.ts";

const rate = (linesPerSecond: number, bytesPerSecond = 1_000_000) => ({ linesPerSecond, bytesPerSecond });
const admitted = (bounds: LogBounds, project: string, lines: number, at: number, organization = "o1") =>
  Array.from({ length: lines }, () => bounds.admits({ organization, project }, at, 10)).filter(Boolean)
    .length;

test("a project may write its rate, and after a silence so many seconds of it together", () => {
  const bounds = new LogBounds({ project: rate(10), organization: rate(1_000), burstSeconds: 5 });
  expect(admitted(bounds, "p1", 100, 1_000_000)).toBe(50);
  expect(admitted(bounds, "p1", 100, 1_000_000)).toBe(0);
  expect(admitted(bounds, "p1", 100, 1_001_000)).toBe(10);
  expect(admitted(bounds, "p1", 100, 1_003_500)).toBe(25);
  expect(admitted(bounds, "p1", 100, 9_000_000)).toBe(50);
  // Another project has its own.
  expect(admitted(bounds, "p2", 100, 1_000_000)).toBe(50);
});

test("lines that have waited count at the time at which they were written", () => {
  const bounds = new LogBounds({ project: rate(10), organization: rate(10), burstSeconds: 1 });
  const late = Array.from({ length: 3_600 }, (_, second) => admitted(bounds, "p1", 10, second * 1_000));
  expect(late.every((lines) => lines === 10)).toBe(true);
});

test("bytes count, too, and a clock that is set back gives nothing twice", () => {
  const bounds = new LogBounds({
    project: rate(1_000, 100),
    organization: rate(1_000, 100),
    burstSeconds: 1,
  });
  expect(admitted(bounds, "p1", 100, 5_000)).toBe(10);
  expect(admitted(bounds, "p1", 100, 1_000)).toBe(0);
  expect(admitted(bounds, "p1", 100, 5_000)).toBe(0);
  expect(admitted(bounds, "p1", 100, 5_500)).toBe(5);
});

test("the projects of an organization share its rate, and take nothing of another's", () => {
  const bounds = new LogBounds({ project: rate(10), organization: rate(15), burstSeconds: 1 });
  expect(admitted(bounds, "p1", 100, 0)).toBe(10);
  expect(admitted(bounds, "p2", 100, 0)).toBe(5);
  expect(admitted(bounds, "p1", 100, 0, "o2")).toBe(10);
});
