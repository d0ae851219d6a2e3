import { describe, expect, test } from "vitest";
import type { Result } from "./agent/protocol.ts";
import { jobState, type WorkJob, type WorkPod } from "./job-state.ts";

const NOW = new Date("2026-03-01T12:00:00Z");
const GOOD: Result = { ok: true, sizeBytes: 7, sha256: "ab" };
const BAD: Result = { ok: false, reason: "DumpFailed", message: "the dump ended with exit code 1" };

const job = (...conditions: string[]): WorkJob => ({
  metadata: { name: "shop-b1-dump" },
  status: {
    conditions: conditions.map((type) =>
      type === "DeadlineExceeded"
        ? { type: "Failed", status: "True", reason: type }
        : { type, status: "True" },
    ),
  },
});

/** @param agent what it has said @param engine its exit code; undefined while it runs */
const pod = (
  name: string,
  agent: Result | undefined,
  engine: number | undefined,
  end = "11:59:50",
): WorkPod => {
  const finishedAt = `2026-03-01T${end}Z`;
  const ended = (exitCode: number, message?: string) => ({
    state: { terminated: { exitCode, message, finishedAt } },
  });
  return {
    metadata: { name },
    status: {
      containerStatuses: [
        { name: "agent", ...(agent ? ended(agent.ok ? 0 : 1, JSON.stringify(agent)) : {}) },
        { name: "engine", ...(engine === undefined ? {} : ended(engine)) },
      ],
    },
  };
};

describe("a Job", () => {
  test("that is complete has succeeded with what its agent says, whatever tries before it said", () => {
    const pods = [pod("b", GOOD, 0), pod("a", BAD, 1, "11:58:00")];
    expect(jobState(job("Complete"), pods, NOW)).toEqual({ state: "succeeded", result: GOOD });
  });

  test("is not over because its agent is", () => {
    expect(jobState(job(), [pod("a", GOOD, undefined)], NOW)).toEqual({ state: "running" });
  });

  test("that is complete without a word has failed", () => {
    expect(jobState(job("Complete"), [], NOW)).toMatchObject({ state: "failed", reason: "StoreFailed" });
  });

  test("that was abandoned reports the last try's reason", () => {
    const pods = [pod("a", { ...BAD, message: "first" }, 1, "11:50:00"), pod("b", BAD, 1)];
    expect(jobState(job("Failed"), pods, NOW)).toEqual({
      state: "failed",
      reason: "DumpFailed",
      message: BAD.message,
    });
  });

  test("that took too long says so, though an agent has been done", () => {
    expect(jobState(job("DeadlineExceeded"), [pod("a", GOOD, undefined)], NOW)).toMatchObject({
      reason: "DeadlineExceeded",
    });
  });

  test("whose one container has failed has a pod that will never end, after a while", () => {
    const late = pod("a", BAD, undefined, "11:59:00");
    expect(jobState(job(), [late], NOW)).toEqual({ state: "running", partiallyTerminated: late });
    expect(jobState(job(), [pod("a", BAD, undefined)], NOW)).toEqual({ state: "running" });
    expect(jobState(job(), [pod("a", undefined, 0, "11:00:00")], NOW)).toEqual({ state: "running" });
  });

  test("of pods that say what nobody understands has failed", () => {
    const strange = pod("a", undefined, 1);
    expect(jobState(job("Failed"), [strange], NOW)).toMatchObject({ state: "failed", reason: "StoreFailed" });
  });
});
