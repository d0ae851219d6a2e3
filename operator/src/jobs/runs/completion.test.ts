import type { JobRun } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { chargeOf, completionOf } from "./completion.ts";

const day = (time: string) => `2026-01-01T${time}Z`;
const run = (cancelRequestedAt?: string, status: JobRun["status"] = {}): JobRun => ({
  apiVersion: "slipway.dev/v1alpha1",
  kind: "JobRun",
  metadata: { name: "p-1" },
  spec: {
    projectRef: { name: "p" },
    trigger: "schedule",
    scheduledAt: day("00:00:00"),
    ...(cancelRequestedAt ? { cancelRequestedAt: day(cancelRequestedAt) } : {}),
  },
  status,
});
const ended = (from: string, to: string | undefined, exitCode = 0) => ({
  state: "ended" as const,
  startedAt: new Date(day(from)),
  ...(to ? { finishedAt: new Date(day(to)) } : {}),
  exitCode,
});
const limit = {
  limitMs: 3_600_000,
  stoppedAtLimit: false,
  admittedAt: new Date(day("00:00:00")),
  now: new Date(day("01:30:00")),
};

describe("a run", () => {
  test.each([
    ["exits with 0", run(), ended("00:00:01", "00:00:02"), limit, "succeeded", "00:00:02", 1],
    ["exits with 59 s", run(), ended("00:00:00", "00:00:59"), limit, "succeeded", "00:00:59", 1],
    ["exits with 1", run(), ended("00:00:00", "00:01:10", 1), limit, "failed", "00:01:10", 2],
    ["ends immediately", run(), ended("00:00:05", "00:00:05"), limit, "succeeded", "00:00:05", 1],
    [
      "reaches its limit",
      run(),
      ended("00:00:00", "01:00:00", 143),
      limit,
      "deadline_exceeded",
      "01:00:00",
      60,
    ],
    [
      "uses its grace, too",
      run(),
      ended("00:00:00", "01:00:30", 137),
      limit,
      "deadline_exceeded",
      "01:00:30",
      60,
    ],
    [
      "is stopped at its limit by a faster clock",
      run(),
      ended("00:00:00", "00:59:57", 143),
      { ...limit, stoppedAtLimit: true },
      "deadline_exceeded",
      "00:59:57",
      60,
    ],
    [
      "has ended on its own, and its silent node reported it late",
      run(),
      ended("00:00:00", "00:10:00", 1),
      { ...limit, stoppedAtLimit: true },
      "failed",
      "00:10:00",
      10,
    ],
    [
      "is cancelled",
      run("00:01:30.250"),
      ended("00:00:00", "00:02:05", 143),
      limit,
      "cancelled",
      "00:01:30.250",
      2,
    ],
    [
      "ends in the second of its cancellation",
      run("00:01:30.900"),
      ended("00:00:00", "00:01:30"),
      limit,
      "cancelled",
      "00:01:30",
      2,
    ],
    // Shows: docs/jobs.md#job-run: `running` | it ends while it is being cancelled | the state of its
    [
      "has ended before its cancellation",
      run("00:01:31"),
      ended("00:00:00", "00:01:30"),
      limit,
      "succeeded",
      "00:01:30",
      2,
    ],
    [
      "is cancelled before its container starts",
      run("00:00:01"),
      ended("00:00:05", "00:00:20", 143),
      limit,
      "cancelled",
      "00:00:05",
      1,
    ],
    [
      "is cancelled by a request of years ago",
      run("00:00:00", { lastObservedRunningAt: day("00:58:30") }),
      ended("00:00:05", "00:59:00", 143),
      limit,
      "cancelled",
      "00:58:20",
      59,
    ],
    [
      "was observed again after its cancellation",
      run("00:01:40", { lastObservedRunningAt: day("00:02:09"), cancelEffectiveAt: day("00:01:40") }),
      ended("00:00:05", "00:02:10", 143),
      limit,
      "cancelled",
      "00:01:40",
      2,
    ],
    [
      "is cancelled with a request of the future",
      run("23:00:00", { lastObservedRunningAt: day("01:29:30") }),
      ended("01:00:00", "01:29:58", 143),
      { ...limit, admittedAt: new Date(day("01:00:00")), now: new Date(day("01:29:57")) },
      "cancelled",
      "01:29:57",
      30,
    ],
    [
      "ran on a node six hours ahead",
      run(),
      ended("06:28:30", "06:30:01"),
      { ...limit, admittedAt: new Date(day("00:28:00")), now: new Date(day("00:30:02")) },
      "succeeded",
      "00:30:02",
      2,
    ],
    [
      "ran on a node an hour behind",
      run(),
      ended("00:05:00", "00:07:30"),
      { ...limit, admittedAt: new Date(day("01:05:02")), now: new Date(day("01:07:40")) },
      "succeeded",
      "01:07:32",
      3,
    ],
    [
      "ran for longer than it could have, by a clock that was set back and forth",
      run(),
      ended("00:10:00", "09:00:00"),
      { ...limit, admittedAt: new Date(day("00:20:00")), now: new Date(day("00:40:00")) },
      "succeeded",
      "00:40:00",
      20,
    ],
    [
      "ends before it starts, by its node's clock",
      run(),
      ended("00:00:05", "00:00:01"),
      limit,
      "succeeded",
      "00:00:05",
      1,
    ],
  ] as const)("that %s", (_what, of, facts, context, phase, billedUntil, minutes) => {
    const end = completionOf(of, facts, context);
    expect(end && [end.phase, end.billedUntil]).toEqual([phase, new Date(day(billedUntil))]);
    expect(end && chargeOf(end, "0.125")).toEqual({
      billedMinutes: minutes,
      amount: `${(minutes * 125) / 1_000}`,
    });
  });

  test.each([
    ["has failed", run(undefined, seen("00:04:30")), "failed", "00:04:30"],
    ["was cancelled", run("00:09:00", seen("00:04:30")), "cancelled", "00:04:30"],
    [
      "was cancelled while it was still seen",
      run("00:04:00", { ...seen("00:04:30"), cancelEffectiveAt: day("00:04:00") }),
      "cancelled",
      "00:04:00",
    ],
  ] as const)("that vanished %s and is billed up to when it was seen", (_what, of, phase, until) => {
    const end = completionOf(of, undefined, limit);
    expect(end && [end.phase, end.billedUntil]).toEqual([phase, new Date(day(until))]);
  });

  test("whose end its kubelet does not know ended when it was seen last", () => {
    const of = run(undefined, seen("00:04:30"));
    const end = completionOf(of, { state: "ended", exitCode: 137, reason: "ContainerStatusUnknown" }, limit);
    expect(end).toMatchObject({ phase: "failed", finishedAt: new Date(day("00:04:30")) });
  });

  test("whose container never ran has no end", () => {
    expect(
      completionOf(run(), { state: "ended", exitCode: 128, reason: "StartError" }, limit),
    ).toBeUndefined();
    expect(completionOf(run("00:00:01"), undefined, limit)).toBeUndefined();
  });
});

function seen(until: string): JobRun["status"] {
  return { phase: "running", startedAt: day("00:00:10"), lastObservedRunningAt: day(until) };
}
