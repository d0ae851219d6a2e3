import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { behindAt, CLOCK_VARIABLE, type ClockSchedule, caughtUpAt, evenSteps } from "./compressed-clock.ts";

const HOUR = 3_600_000;
const schedule: ClockSchedule = {
  began: 1_000_000,
  everyMs: 10_000,
  behindMs: evenSteps(HOUR, 3),
  pauseDivisor: 4,
};

test("a clock is behind by less with each step, and then not at all", () => {
  expect(schedule.behindMs).toEqual([3 * HOUR, 2 * HOUR, HOUR]);
  const behind = [0, 1_000_000, 1_000_001, 1_010_000, 1_010_001, 1_020_001].map((at) =>
    behindAt(schedule, at),
  );
  expect(behind.map((ms) => ms / HOUR)).toEqual([3, 3, 2, 2, 1, 0]);
  expect(behindAt(schedule, caughtUpAt(schedule))).toBe(0);
});

test("a process lives by it, and reads the time of HTTP answers by it, but no other time", async () => {
  const program = `console.log(JSON.stringify([
    new Date().getTime(), Date.now(), new Date("Tue, 01 Dec 2026 01:00:00 GMT"), new Date("2026-12-01T01:00:00Z"),
    new Date(0) instanceof Date, new Date(new Date(5)).getTime()]))`;
  const real = Date.now();
  const later = { ...schedule, began: real + HOUR };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", join(import.meta.dirname, "compressed-clock.ts"), "-e", program],
    { env: { ...process.env, [CLOCK_VARIABLE]: JSON.stringify(later) } },
  );
  const [now, also, answer, ...others] = JSON.parse(stdout) as unknown[];
  expect(Number(now)).toBeGreaterThanOrEqual(real - 3 * HOUR);
  expect(Number(now)).toBeLessThan(Date.now() - 2 * HOUR);
  expect(Number(also)).toBeGreaterThanOrEqual(Number(now));
  expect(answer).toBe("2026-11-30T22:00:00.000Z");
  expect(others).toEqual(["2026-12-01T01:00:00.000Z", true, 5]);
});
