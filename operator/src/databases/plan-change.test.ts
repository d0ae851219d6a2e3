import { describe, expect, test } from "vitest";
import {
  lateInMs,
  nextPlanStatus,
  type PlanChange,
  type PlanStatus,
  planToBuild,
  type Seen,
} from "./plan-change.ts";

const START = "2026-03-01T00:00:00.000Z";
const LATER = "2026-03-01T00:04:59.999Z";
const LATE = "2026-03-01T00:05:00.000Z";
const FIRST = "2026-02-28T23:59:59Z";
const SECOND = "2026-03-02T00:00:00Z";

const seen = (now: string, more: Partial<Seen> = {}): Seen => ({
  now: new Date(now),
  done: false,
  refused: false,
  deadlineMs: 300_000,
  ...more,
});
const asked = (plan: string, planRequestedAt?: string) => ({ plan, planRequestedAt });
const running: PlanChange = {
  status: "in_progress",
  fromPlan: "small",
  toPlan: "large",
  requestedAt: FIRST,
  startedAt: START,
};
const failed: PlanChange = { ...running, status: "failed", finishedAt: LATE };

const cases: [string, ReturnType<typeof asked>, PlanStatus, Seen, string, PlanStatus][] = [
  ["a new project is on its plan immediately", asked("small"), {}, seen(START), "small", { plan: "small" }],
  ["no request changes nothing", asked("small"), { plan: "small" }, seen(START), "small", { plan: "small" }],
  [
    "a request begins a change, and the plan before stays in force",
    asked("large", FIRST),
    { plan: "small" },
    seen(START),
    "large",
    { plan: "small", change: running },
  ],
  [
    "a change continues until every instance is rolled out",
    asked("large", FIRST),
    { plan: "small", change: running },
    seen(LATER),
    "large",
    { plan: "small", change: running },
  ],
  [
    "a change that is done puts the plan in force and leaves nothing behind",
    asked("large", FIRST),
    { plan: "small", change: running },
    seen(LATER, { done: true }),
    "large",
    { plan: "large" },
  ],
  [
    "a change that is done in the moment of its deadline is done",
    asked("large", FIRST),
    { plan: "small", change: running },
    seen(LATE, { done: true }),
    "large",
    { plan: "large" },
  ],
  // Shows: docs/databases-api.md#change-of-plan: of ClickHouse: one instance after the other in the
  [
    "a change that is not done at its deadline has failed",
    asked("large", FIRST),
    { plan: "small", change: running },
    seen(LATE),
    "large",
    { plan: "small", change: failed },
  ],
  [
    "a change to an unavailable plan fails immediately",
    asked("large", FIRST),
    { plan: "small" },
    seen(START, { refused: true }),
    "large",
    { plan: "small", change: { ...failed, finishedAt: START } },
  ],
  // Shows: docs/databases-api.md#change-of-plan: of ClickHouse: one instance after the other in the
  [
    "a failed change is not retried automatically, whatever is observed",
    asked("large", FIRST),
    { plan: "small", change: failed },
    seen(SECOND, { done: true }),
    "small",
    { plan: "small", change: failed },
  ],
  [
    "another request for the same plan starts another change",
    asked("large", SECOND),
    { plan: "small", change: failed },
    seen(SECOND),
    "large",
    { plan: "small", change: { ...running, requestedAt: SECOND, startedAt: "2026-03-02T00:00:00.000Z" } },
  ],
  [
    "asking for the plan in force clears a failure",
    asked("small", SECOND),
    { plan: "small", change: failed },
    seen(SECOND),
    "small",
    { plan: "small" },
  ],
  [
    "asking for the plan in force ends a change that runs",
    asked("small", SECOND),
    { plan: "small", change: running },
    seen(LATER),
    "small",
    { plan: "small" },
  ],
  [
    "a third plan may be requested in between",
    asked("huge"),
    { plan: "small", change: running },
    seen(START),
    "huge",
    { plan: "small", change: { ...running, toPlan: "huge", requestedAt: undefined } },
  ],
];

describe("a change of plan", () => {
  test.each(cases)("%s", (_, request, planStatus, what, build, next) => {
    expect(planToBuild(request, planStatus)).toBe(build);
    expect(nextPlanStatus(request, planStatus, what)).toEqual(next);
  });

  test("is the same when it is derived twice", () => {
    for (const [, request, planStatus, what] of cases) {
      const once = nextPlanStatus(request, planStatus, what);
      // `done` is about the plan that was built, which is another one after a failure.
      const again = nextPlanStatus(request, once, { ...what, done: false });
      expect(again).toEqual(once);
    }
  });

  test("is late when its deadline has passed", () => {
    expect(lateInMs({ plan: "small" }, seen(START))).toBeUndefined();
    expect(lateInMs({ plan: "small", change: failed }, seen(START))).toBeUndefined();
    expect(lateInMs({ plan: "small", change: running }, seen(START))).toBe(300_000);
    expect(lateInMs({ plan: "small", change: running }, seen(LATER))).toBe(1);
    expect(lateInMs({ plan: "small", change: running }, seen(SECOND))).toBe(0);
  });
});
