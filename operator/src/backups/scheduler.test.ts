import { describe, expect, test } from "vitest";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
import { dueOccurrence, policyOf } from "./scheduler.ts";
import { parseBackupSettings } from "./settings.ts";

const at = (text: string) => new Date(`2026-03-${text}:00Z`);

describe("the occurrence that is due", () => {
  test.each([
    ["none before its minute", "30 2 * * *", "02T02:30", "03T02:29", undefined],
    ["one at its minute", "30 2 * * *", "02T02:30", "03T02:30", "03T02:30"],
    ["none that was dealt with", "30 2 * * *", "03T02:30", "03T23:00", undefined],
    // Shows: docs/backups.md#over-v1: `PUT /v1/project/:id/backups/policy` | the whole policy; omitted
    ["the last of those that were missed", "30 2 * * *", "02T02:30", "09T12:00", "09T02:30"],
    ["the last of many", "* * * * *", "01T00:00", "28T00:00", "28T00:00"],
    ["the last of a rare schedule", "0 0 5 * *", "01T00:00", "20T00:00", "05T00:00"],
    ["none of a schedule that is never due", "0 0 31 2 *", "01T00:00", "28T00:00", undefined],
  ])("is %s", (_, cron, since, now, want) => {
    expect(dueOccurrence(cron, at(since), at(now))).toEqual(want && at(want));
  });
});

const settings = parseBackupSettings(
  `{ image: slipway, schedule: "30 2 * * *", verifySchedule: "0 5 * * 0" }`,
);
const MINUTE_MS = 60_000;

function database(uid: string, backup?: object) {
  const project = exampleDatabase({
    type: "postgresql",
    plan: "db-basic",
    version: "17",
    database: { backup },
  });
  return { ...project, metadata: { ...project.metadata, uid } };
}

describe("the turns of databases", () => {
  test("are spread over the platform's schedule, each at its own and always the same", () => {
    const delays = Array.from(
      { length: 500 },
      (_, index) => policyOf(database(`uid-${index}`), settings)?.schedule?.delayMs ?? -1,
    );
    for (let tenth = 0; tenth < 10; tenth += 1) {
      const within = delays.filter((delay) => Math.floor(delay / (6 * MINUTE_MS)) === tenth);
      expect(within.length).toBeGreaterThan(25);
    }
    expect(delays[7]).toBe(policyOf(database("uid-7"), settings)?.schedule?.delayMs);
    expect(policyOf(database("uid-7"), settings)?.verifySchedule?.cron).toBe("0 5 * * 0");
  });

  test("are kept to the minute by a schedule of their own, or where nothing is spread", () => {
    const own = policyOf(database("uid-7", { schedule: "0 1 * * *" }), settings);
    expect(own?.schedule).toEqual({ cron: "0 1 * * *", delayMs: 0 });
    expect(own?.verifySchedule?.delayMs).toBeGreaterThan(0);
    const usual = policyOf(database("uid-7"), { ...settings, spreadMinutes: 0 });
    expect(usual?.schedule).toEqual({ cron: "30 2 * * *", delayMs: 0 });
  });
});
