import type { Project } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import {
  type Bounds,
  LEAST_REQUESTS,
  limitsSince,
  observeDeployments,
  observeRequests,
  observeRuns,
  observeSeries,
  type Point,
} from "./observe.ts";
import { nextState } from "./transition.ts";

const NOW = 1_800_000_000;
const BOUNDS = { threshold: 80, forSeconds: 300 };
/** Steps of 30 s up to now, the last one first as it is given. */
const steps = (...values: (number | null)[]): Point[] =>
  values
    .flatMap((value, index) => (value === null ? [] : [{ at: NOW - 30 * (index + 1), value, least: value }]))
    .toReversed();
const many = (count: number, value: number | null) => Array<number | null>(count).fill(value);
const verdict = (points: Point[], bounds: Bounds = BOUNDS, now = NOW) =>
  observeSeries(points, bounds, now).verdict;

describe("a series", () => {
  // Shows: docs/alerts.md#what-is-promised: an alert fires once its value has been at the threshold for the whole time
  test("is over its threshold once it has been for the whole time, and not a step before", () => {
    expect(verdict(steps(...many(10, 80)))).toBe("undecided");
    expect(verdict(steps(...many(11, 80)))).toBe("over");
    expect(verdict(steps(...many(11, 79.99)))).toBe("under");
    // Two steps, whose samples may be a second apart.
    expect(verdict(steps(...many(2, 95)), { threshold: 80, forSeconds: 60 })).toBe("undecided");
    expect(verdict(steps(...many(3, 95)), { threshold: 80, forSeconds: 60 })).toBe("over");
    expect(observeSeries(steps(...many(11, 91.234)), BOUNDS, NOW).value).toBe(91.23);
  });

  // Shows: docs/alerts.md#what-is-promised: a value that goes to and fro changes nothing
  test("that goes to and fro decides nothing", () => {
    expect(verdict(steps(...Array.from({ length: 40 }, (_, index) => (index % 5 === 4 ? 10 : 95))))).toBe(
      "undecided",
    );
    expect(verdict(steps(...many(10, 10), ...many(20, 95)))).toBe("undecided");
    expect(verdict(steps(...many(11, 10), ...many(20, 95)))).toBe("under");
    // Within each step.
    expect(verdict(steps(...many(40, 95)).map((point) => ({ ...point, least: 10 })))).toBe("undecided");
  });

  // Shows: docs/alerts.md#what-is-promised: no alert is made of data that is missing
  test("of which a part is missing decides nothing, and single samples that are late are no gap", () => {
    expect(verdict(steps(...many(5, 95), ...many(3, null), ...many(20, 95)))).toBe("undecided");
    expect(verdict(steps(...many(5, 95), ...many(2, null), ...many(20, 95)))).toBe("over");
  });

  test("that has ended is stale, and later forgotten", () => {
    const before = steps(...many(20, 95));
    expect([60, 100, 270, 300, 869, 900].map((later) => verdict(before, BOUNDS, NOW + later))).toEqual([
      ...["over", "undecided", "stale", "stale", "stale", "forgotten"],
    ]);
    expect(verdict([])).toBe("forgotten");
  });

  test("is decided by none before a moment, and by those after it once they are long enough", () => {
    const verdictFrom = (ago: number) => verdict(steps(...many(40, 95)), { ...BOUNDS, from: NOW - ago });
    expect([-Infinity, 0, 30, 329, 330].map(verdictFrom)).toEqual([
      ...["undecided", "undecided", "undecided", "undecided", "over"],
    ]);
    expect(verdict([], { ...BOUNDS, from: Infinity })).toBe("forgotten");
  });

  test("is not decided by steps after now, which a clock that was ahead has left", () => {
    const ahead = Array.from({ length: 20 }, (_, index) => ({
      ...{ at: NOW + 30 * (index + 1), value: 95, least: 95 },
    }));
    expect(verdict(ahead)).toBe("forgotten");
    expect(verdict([...steps(...many(11, 10)), ...ahead])).toBe("under");
  });
});

describe("requests", () => {
  const minutes = (...counts: [requests: number, errors: number][]) =>
    counts
      .map(([requests, errors], index) => ({ at: NOW - 60 * (index + 1), requests, errors }))
      .toReversed();
  const bounds = { threshold: 5, forSeconds: 120 };

  test("are over the threshold by the share of all of the window", () => {
    expect(observeRequests(minutes([50, 0], [50, 5]), bounds, NOW)).toEqual({ verdict: "over", value: 5 });
    expect(observeRequests(minutes([50, 0], [50, 4]), bounds, NOW)).toEqual({ verdict: "under", value: 4 });
    // Of before the window.
    expect(observeRequests(minutes([50, 0], [50, 0], [500, 500]), bounds, NOW).verdict).toBe("under");
  });

  // Shows: docs/alerts.md#metrics: `error_rate`
  test("that are too few decide nothing", () => {
    const before: [number, number][] = [0, 0, 50].map((requests) => [requests, 0]);
    const tooFew = minutes([LEAST_REQUESTS - 1, 9], ...before);
    expect(observeRequests(tooFew, bounds, NOW).verdict).toBe("undecided");
    expect(observeRequests(minutes([LEAST_REQUESTS, 9]), bounds, NOW).verdict).toBe("over");
    expect(observeRequests(minutes([5, 5]), bounds, NOW + 900).verdict).toBe("forgotten");
  });

  // Shows: docs/alerts.md#states: `no_data` | nothing has been measured yet
  test("of a quiet site are forgotten once no window of a quarter of an hour had enough of them", () => {
    const quiet = Array.from({ length: 80 }, (): [number, number] => [1, 0]);
    expect(observeRequests(minutes(...quiet), bounds, NOW).verdict).toBe("forgotten");
    const busyBefore = (minute: number) => minutes(...quiet.with(minute, [50, 50]));
    const verdictOf = (minute: number) => observeRequests(busyBefore(minute), bounds, NOW).verdict;
    expect([0, 1, 2, 15, 16, 30].map(verdictOf)).toEqual([
      ...["over", "over", "undecided", "undecided", "forgotten", "forgotten"],
    ]);
  });
});

const status = (value: object) => ({ status: value }) as Pick<Project, "status">;

// Shows: docs/alerts.md#metrics: `cpu`, `memory`
test("limits are those of now since the end of what has changed instances last", () => {
  const at = "2026-01-01T00:00:10Z";
  const seconds = Date.parse(at) / 1_000;
  const since = (value: object, type = "http") =>
    limitsSince({ spec: { type }, status: value } as Pick<Project, "spec" | "status">);
  expect(since({})).toBe(0);
  expect(since({ deployments: [{ status: "in_progress" }, { status: "succeeded", finishedAt: at }] })).toBe(
    Infinity,
  );
  expect(since({ deployments: [{ status: "succeeded", finishedAt: at }] })).toBe(seconds);
  const failed = (plan: string) => ({
    plan,
    deployments: [
      { status: "failed", finishedAt: at, settings: { plan: "small" } },
      { status: "superseded", settings: { plan: "small" } },
      { status: "succeeded", settings: { plan: "large" } },
    ],
  });
  expect(since(failed("small"))).toBe(Infinity);
  // The plan of the instances that serve, again.
  expect(since(failed("large"))).toBe(seconds);
  const conditions = [{ type: "Progressing", status: "False", lastTransitionTime: at }];
  expect(since({ conditions }, "postgresql")).toBe(0);
  expect(since({ conditions }, "clickhouse")).toBe(seconds);
  expect(since({ conditions, planChange: { status: "in_progress" } }, "clickhouse")).toBe(Infinity);
});

// Shows: docs/alerts.md#metrics: `failed_deployment`
test("the last deployment that has ended decides, whatever has begun since", () => {
  const verdictOf = (...deployments: string[]) =>
    observeDeployments(status({ deployments: deployments.map((one) => ({ status: one })) })).verdict;
  expect(verdictOf("in_progress", "superseded", "failed", "succeeded")).toBe("over");
  expect(verdictOf("succeeded", "failed")).toBe("under");
  expect(verdictOf("in_progress")).toBe("undecided");
});

// Shows: docs/alerts.md#metrics: `missed_run`
test("the last occurrence decides, unless the schedule has begun again", () => {
  const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
  const verdictOf = (job: object) => observeRuns(status({ job })).verdict;
  const missedReasons = [{ reason: "overlap", count: 1, lastScheduledAt: at(5) }];
  expect(verdictOf({})).toBe("undecided");
  expect(verdictOf({ lastScheduledAt: at(5) })).toBe("under");
  expect(verdictOf({ lastScheduledAt: at(5), missedReasons })).toBe("over");
  expect(verdictOf({ lastScheduledAt: at(6), missedReasons })).toBe("under");
  expect(verdictOf({ lastScheduledAt: at(5), missedReasons, scheduledSince: at(9) })).toBe("under");
});

// Shows: docs/alerts.md#states: `ok` | what is watched is not so
// Shows: docs/alerts.md#states: `firing` | it is.
// Shows: docs/alerts.md#states: `no_data` | nothing has been measured yet
test("a state changes by what is observed, and by missing data only where that is known to be missing", () => {
  expect(nextState(undefined, "over", false, false)).toBe("firing");
  expect(nextState("firing", "over", true, false)).toBeUndefined();
  expect(nextState("firing", "undecided", true, false)).toBeUndefined();
  expect(nextState("firing", "under", false, false)).toBe("ok");
  expect(nextState("ok", "stale", true, false)).toBe("no_data");
  expect(nextState("firing", "stale", true, false)).toBeUndefined();
  expect(nextState("firing", "forgotten", true, false)).toBe("no_data");
  expect(nextState("firing", "forgotten", false, false)).toBeUndefined();
  expect(nextState(undefined, "forgotten", true, false)).toBeUndefined();
  expect(nextState("no_data", "under", false, false)).toBe("ok");
  // One that is too new is followed by nothing but the absence of data.
  expect(nextState("firing", "under", false, true)).toBeUndefined();
  expect(nextState("ok", "over", false, true)).toBeUndefined();
  expect(nextState("firing", "forgotten", true, true)).toBe("no_data");
  expect(nextState("no_data", "over", false, true)).toBe("firing");
  expect(nextState(undefined, "over", false, true)).toBe("firing");
});
