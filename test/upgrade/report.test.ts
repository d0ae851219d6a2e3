import { expect, test } from "vitest";
import type { Seen } from "../hostile/samples.ts";
import { faults, markdown, type Results, type Step } from "./report.ts";

const none: Seen = { sent: 100, failed: 0, failures: [], p50: 3, p99: 20, max: 30 };
const step: Step = {
  name: "0.1.0 → 0.2.0",
  seconds: 44.4,
  kills: 0,
  seen: { app: none, read: none, search: none, write: none, row: none },
  replacedPods: [],
  builds: { succeeded: 3, failures: [] },
};
const results: Results = {
  commit: "abc",
  steps: [step],
  outcome: {
    dueRuns: 2,
    missedRuns: [],
    violations: [],
    rows: [{ engine: "PostgreSQL", acknowledged: 10, lost: 0, failures: [] }],
  },
};
const withStep = (change: Partial<Step>): Results => ({ ...results, steps: [{ ...step, ...change }] });
const withOutcome = (change: Partial<Results["outcome"]>): Results => ({
  ...results,
  outcome: { ...results.outcome, ...change },
});

test("an upgrade that nobody noticed has no fault", () => {
  expect(faults(results)).toEqual([]);
  expect(markdown(results)).toContain("| 0.1.0 → 0.2.0 | 44 | 0 | 0 of 100, 3.0 / 20 |");
  expect(markdown(results)).toContain("Nothing is wrong.");
});

test.each<[string, Results, string]>([
  [
    "a failed request",
    withStep({ seen: { ...step.seen, app: { ...none, failed: 1, failures: ["1 x 502"] } } }),
    "0.1.0 → 0.2.0: 1 of 100 of kind app failed (1 x 502)",
  ],
  [
    "another pod",
    withStep({ replacedPods: ["web-1"] }),
    "0.1.0 → 0.2.0: 1 pods of tenants were replaced: web-1",
  ],
  ["no build", withStep({ builds: { succeeded: 0, failures: [] } }), "0.1.0 → 0.2.0: no build succeeded"],
  [
    "a failed build",
    withStep({ builds: { succeeded: 1, failures: ["the build is failed: gone"] } }),
    "0.1.0 → 0.2.0: the build is failed: gone",
  ],
  ["a job that was never due", withOutcome({ dueRuns: 0 }), "no run of the job was due"],
  [
    "a missed run",
    withOutcome({ missedRuns: ["12:00"] }),
    "no run of the job succeeded that was due at 12:00",
  ],
  [
    "a charge that is off",
    withOutcome({ violations: ["one charge per ledger entry: r: 1 entries, 2 charges"] }),
    "one charge per ledger entry: r: 1 entries, 2 charges",
  ],
  [
    "a lost row",
    withOutcome({ rows: [{ engine: "Valkey", acknowledged: 10, lost: 2, failures: [] }] }),
    "Valkey lost 2 of 10 acknowledged rows",
  ],
  [
    "a database that accepted nothing",
    withOutcome({ rows: [{ engine: "Valkey", acknowledged: 0, lost: 0, failures: [] }] }),
    "Valkey acknowledged no row",
  ],
  [
    "a session that was ended",
    withOutcome({ rows: [{ engine: "MariaDB", acknowledged: 10, lost: 0, failures: ["reset"] }] }),
    "MariaDB ended 1 sessions (reset)",
  ],
])("%s is a fault", (_, wrong, fault) => {
  expect(faults(wrong)).toEqual([fault]);
});
