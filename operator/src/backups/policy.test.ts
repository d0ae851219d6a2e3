import { describe, expect, test } from "vitest";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
import { policyOf } from "./policy.ts";
import { parseBackupSettings } from "./settings.ts";

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
