import { expect, test } from "vitest";
import {
  type Expectations,
  type LedgerRun,
  type PodRecord,
  type Records,
  unfinished,
  violations,
} from "./checks.ts";

const at = (time: string) => new Date(`2026-03-01T10:${time}Z`);

/** A project after two minutes: one run without a violation, and one occurrence that was missed. */
function sound(): Records {
  const run = {
    id: "p-1",
    project: "p",
    trigger: "schedule",
    scheduledAt: at("01:00"),
    startedAt: at("01:01"),
    finishedAt: at("02:02"),
    billedUntil: at("02:02"),
    status: "failed",
    billedMinutes: 2,
    pricePerMinute: "0.02",
    amount: "0.04",
  };
  return {
    pods: [
      {
        uid: "u1",
        name: "p-1-x",
        project: "p",
        run: "p-1",
        startedAt: at("01:01"),
        finishedAt: at("02:02"),
        exitCode: 3,
        finalizers: [],
        deleted: true,
      },
    ],
    jobRuns: [
      {
        name: "p-1",
        project: "p",
        trigger: "schedule",
        scheduledAt: at("01:00"),
        admittedAt: at("01:00"),
        lastObservedRunningAt: at("02:00"),
        chargedAt: at("02:04"),
        refused: false,
        deleted: false,
      },
    ],
    jobs: [],
    projects: [
      {
        id: "p",
        scheduledSince: at("00:30"),
        lastScheduledAt: at("02:00"),
        missed: 1,
        missedReasons: { Overlap: 1 },
      },
    ],
    runs: [run],
    charges: [{ run: "p-1", project: "p", amount: "0.0400" }],
  };
}

/** The records with members of their first entries replaced. */
const changed = (change: { [K in keyof Records]?: Partial<Records[K][number]> }): Records => {
  const records = sound();
  return Object.fromEntries(
    Object.entries(records).map(([key, [first, ...rest]]) => [
      key,
      first === undefined ? [] : [{ ...first, ...change[key as keyof Records] }, ...rest],
    ]),
  ) as unknown as Records;
};
const twice = (key: keyof Records, other: object = {}): Records => {
  const records = sound();
  return { ...records, [key]: [...records[key], { ...records[key][0], ...other }] };
};
const without = (key: keyof Records): Records => ({ ...sound(), [key]: [] });
const rules = (records: Records) => violations(records).map(({ rule }) => rule);

test("finds nothing in records without a violation", () => {
  expect(violations(sound())).toEqual([]);
  expect(unfinished(sound())).toEqual([]);
});

test.for<[string, Records, string]>([
  [
    "two pods of one run",
    twice("pods", { uid: "u2", name: "p-1-y", startedAt: undefined }),
    "one pod per run",
  ],
  ["a duplicated ledger entry", twice("runs"), "one ledger entry per run"],
  ["a duplicated charge", twice("charges"), "one charge per ledger entry"],
  ["an entry without a charge", without("charges"), "one charge per ledger entry"],
  ["a run that is not in the ledger", { ...sound(), runs: [], charges: [] }, "no run lost"],
  ["a run in the ledger that no pod ran", without("pods"), "nothing invented"],
  ["a pod without a record", without("jobRuns"), "no container unrecorded"],
  ["a refused run that started", changed({ jobRuns: { refused: true } }), "refused runs do not start"],
  ["another charge than the run's", changed({ charges: { amount: "0.02" } }), "charge is the run's amount"],
  ["another start", changed({ runs: { startedAt: at("01:02") } }), "times are the container's own"],
  ["a pod that has reported two ends", changed({ pods: { otherEnds: [at("02:01")] } }), "a pod ends once"],
  ["another end", changed({ runs: { finishedAt: at("02:03") } }), "times are the container's own"],
  [
    "another end of the billing",
    changed({ runs: { billedUntil: at("02:00") } }),
    "times are the container's own",
  ],
  ["a failed run that succeeded", changed({ runs: { status: "succeeded" } }), "status is the outcome"],
  ["one minute too many", changed({ runs: { billedMinutes: 3 } }), "billed minutes are right"],
  ["an amount that is not exact", changed({ runs: { amount: "0.04001" } }), "amount is exact"],
  ["an admission an hour late", changed({ jobRuns: { admittedAt: at("02:00") } }), "never late"],
  ["an admission before its minute", changed({ jobRuns: { admittedAt: at("00:59") } }), "never early"],
  [
    "a run that began before the last one ended",
    twice("pods", { uid: "u2", run: "p-2", startedAt: at("02:01"), finishedAt: at("02:09") }),
    "never two concurrently",
  ],
  [
    "an occurrence that is neither",
    changed({ projects: { missed: 0, missedReasons: {} } }),
    "every occurrence ran or was missed",
  ],
  [
    "a missed one without a reason",
    changed({ projects: { missedReasons: {} } }),
    "missed ones have their reasons",
  ],
])("finds %s", ([, records, rule]) => {
  expect(rules(records)).toContain(rule);
});

test("a pod that was made in place of one that was removed by force is stopped, and costs nothing", () => {
  const seen = { finishedAt: at("02:00"), billedUntil: at("02:00"), billedMinutes: 1, amount: "0.02" };
  const removed = changed({
    pods: { finishedAt: undefined, exitCode: undefined },
    runs: seen,
    charges: { amount: "0.02" },
  });
  const other = { ...removed.pods[0], uid: "u2", name: "p-1-y", startedAt: at("02:03") } as PodRecord;
  const both = (exitCode: number, ...more: PodRecord[]): Records => ({
    ...removed,
    pods: [...removed.pods, { ...other, finishedAt: at("02:09"), exitCode }, ...more],
  });
  const expected = { vanished: new Set(["p-1"]), replaced: new Set(["p-1"]) };
  const found = (records: Records, expectations: Expectations) =>
    violations(records, expectations).map(({ rule }) => rule);
  expect(found(both(143), expected)).toEqual([]);
  expect(found(both(0), expected)).toContain("one pod per run");
  expect(found(both(143, { ...other, uid: "u3" }), expected)).toContain("one pod per run");
  const unexpected = found(both(143), { vanished: expected.vanished });
  expect(unexpected).toEqual(expect.arrayContaining(["one pod per run", "never two concurrently"]));
  const charged = { startedAt: at("02:03"), ...seen };
  expect(
    found({ ...both(143), runs: [{ ...removed.runs[0], ...charged } as LedgerRun] }, expected),
  ).toContain("times are the container's own");
});

test("finds an occurrence that was caught up", () => {
  const records = twice("pods", { uid: "u2", run: "p-2", startedAt: at("02:03"), finishedAt: at("02:09") });
  const late = { ...records.jobRuns[0], name: "p-2", scheduledAt: at("02:00"), admittedAt: at("02:02") };
  const found = rules({ ...records, jobRuns: [...records.jobRuns, late as Records["jobRuns"][number]] });
  expect(found).toContain("no catch-up");
});

test("bills a cancelled run up to the request", () => {
  const cancel = { cancelRequestedAt: at("01:30") };
  const cancelled = { status: "cancelled", billedUntil: at("01:30"), billedMinutes: 1, amount: "0.02" };
  expect(rules(changed({ jobRuns: cancel, runs: cancelled, charges: { amount: "0.02" } }))).toEqual([]);
  expect(rules(changed({ jobRuns: cancel, runs: { status: "cancelled" } }))).toContain(
    "times are the container's own",
  );
});

test("bills a run whose end was not observed up to the last observation", () => {
  const vanished = new Set(["p-1"]);
  const seen = { finishedAt: at("02:00"), billedUntil: at("02:00"), billedMinutes: 1, amount: "0.02" };
  const records = changed({ runs: seen, charges: { amount: "0.02" } });
  expect(violations(records, { vanished })).toEqual([]);
  expect(violations(sound(), { vanished }).map(({ rule }) => rule)).toContain(
    "times are the container's own",
  );
});

test.for<[string, Records, string]>([
  ["a finalizer on a pod", changed({ pods: { deleted: false, finalizers: ["f"] } }), "no finalizer stuck"],
  [
    "a finalizer on a Job",
    { ...sound(), jobs: [{ name: "p-1", project: "p", finalizers: ["f"] }] },
    "no finalizer stuck",
  ],
  ["a run that is not charged", changed({ jobRuns: { chargedAt: undefined } }), "every run is charged"],
  ["a slot that is not released", changed({ projects: { activeRun: "p-1" } }), "slots are released"],
])("is not finished with %s", ([, records, rule]) => {
  expect(unfinished(records).map((violation) => violation.rule)).toContain(rule);
});
