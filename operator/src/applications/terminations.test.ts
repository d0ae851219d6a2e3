import type { LastTermination, ProjectStatus } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import type { PodView } from "./pod-problem.ts";
import { lastTermination, terminationsOf } from "./terminations.ts";

const ended = (extra: object = {}) => ({
  reason: "Error",
  exitCode: 3,
  message: "out of ideas\n",
  startedAt: "2026-01-01T00:00:00Z",
  finishedAt: "2026-01-01T00:01:00Z",
  ...extra,
});

function pod(container: object, extra: Partial<PodView> = {}, name = "one"): PodView {
  return {
    metadata: { name, uid: `uid-${name}` },
    status: { containerStatuses: [{ name: "app", ...container }] },
    ...extra,
  };
}

const running = (restartCount: number, terminated: object) => ({
  restartCount,
  state: { running: {} },
  lastState: { terminated },
});

describe("terminationsOf", () => {
  test("has code, reason, time and last lines of an instance's last end", () => {
    expect(terminationsOf([pod(running(2, ended({ signal: 9 })))])).toEqual([
      {
        podUid: "uid-one",
        instance: "one",
        exitCode: 3,
        signal: 9,
        reason: "Error",
        finishedAt: "2026-01-01T00:01:00Z",
        restarts: 2,
        lastLines: "out of ideas",
      },
    ]);
  });

  test("reports the same of an end before, during and after the pause until the next start", () => {
    const of = (container: object) => terminationsOf([pod(container)]);
    const terminated = ended();
    const states = [
      { restartCount: 1, state: { terminated } },
      { restartCount: 1, state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated } },
      running(2, terminated),
    ];
    expect(states.map((state) => of(state)[0]?.restarts)).toEqual([2, 2, 2]);
    expect(new Set(states.map((state) => JSON.stringify(of(state)))).size).toBe(1);
  });

  test("counts no restart of a pod that has failed as a whole", () => {
    const evicted = pod({ restartCount: 0, state: { terminated: ended() } });
    expect(terminationsOf([{ ...evicted, status: { ...evicted.status, phase: "Failed" } }])).toMatchObject([
      { restarts: 0 },
    ]);
  });

  test.each<[string, PodView]>([
    ["runs since it was created", pod({ restartCount: 0, state: { running: {} } })],
    ["is being deleted", pod(running(1, ended()), { metadata: { name: "one", deletionTimestamp: "now" } })],
    ["has another container that ended", pod({ ...running(1, ended()), name: "sidecar" })],
    ["has no status", { metadata: { name: "one" } }],
  ])("has nothing of an instance that %s", (_, one) => {
    expect(terminationsOf([one])).toEqual([]);
  });

  const kill = (probe: "liveness" | "startup", at: string) => ({ probeKills: [{ probe, at }] });
  test.each<[string, Partial<PodView>, string]>([
    ["a liveness probe had it ended", kill("liveness", "2026-01-01T00:00:53Z"), "LivenessFailed"],
    ["the probe of the start had it ended", kill("startup", "2026-01-01T00:00:00Z"), "StartupTimeout"],
    ["a probe had the one before ended", kill("liveness", "2025-12-31T23:59:59Z"), "Error"],
    ["a probe had the one after ended", kill("liveness", "2026-01-01T00:01:01Z"), "Error"],
  ])("says whether %s", (_, extra, reason) => {
    expect(terminationsOf([pod(running(1, ended()), extra)])).toMatchObject([{ reason }]);
  });

  const lines = (terminated: object) => terminationsOf([pod(running(1, ended(terminated)))])[0]?.lastLines;
  test("cleans lines of what a terminal would obey, and keeps their ends and tabs", () => {
    const message = "\u001b[31mred\u001b[0m\u0000\u0007\n\tat main\r\n\u001b]0;title\u0007é";
    expect(lines({ message })).toBe("red\n\tat main\né");
  });

  test("keeps the last 2 KiB, from the begin of a character on", () => {
    const text = lines({ message: `first${"é".repeat(2_000)}x` }) ?? "";
    expect(text).toBe(`${"é".repeat(1_023)}x`);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2_048);
  });

  test.each(["ContainerCannotRun", "StartError", "ContainerStatusUnknown"])(
    "has no lines of one that never ran: %s",
    (reason) => {
      expect(lines({ reason })).toBeUndefined();
    },
  );

  test("has no lines where the kubelet has none", () => {
    expect(lines({ message: undefined })).toBeUndefined();
  });
});

describe("lastTermination", () => {
  const at = (instance: string, minute: number, reason = "Error"): LastTermination => ({
    instance,
    exitCode: 1,
    reason,
    finishedAt: `2026-01-01T00:0${minute}:00Z`,
    restarts: 1,
  });
  const deployed = (status: string, minute: number) =>
    ({
      deployments: [{ status, startedAt: `2026-01-01T00:0${minute}:00.500Z` }],
    }) as unknown as ProjectStatus;
  const last = (found: LastTermination[], status: ProjectStatus = {} as ProjectStatus) =>
    lastTermination(
      found.map((one) => ({ ...one, podUid: one.instance })),
      status,
    );

  test("is the newest of all instances", () => {
    expect(last([at("a", 1), at("b", 3), at("c", 2)])).toEqual(at("b", 3));
    expect(last([])).toBeUndefined();
  });

  test("stays when its instance is gone, until a later deployment has succeeded", () => {
    const before = at("gone", 2);
    const after = (status: string, minute: number) =>
      last([], { ...deployed(status, minute), lastTermination: before });
    expect(after("succeeded", 1)).toEqual(before);
    expect(after("in_progress", 3)).toEqual(before);
    expect(after("failed", 3)).toEqual(before);
    expect(after("succeeded", 3)).toBeUndefined();
    expect(last([at("older", 1)], { lastTermination: before } as ProjectStatus)).toEqual(before);
    expect(last([at("newer", 3)], { lastTermination: before } as ProjectStatus)).toEqual(at("newer", 3));
  });

  test("keeps the probe that was its reason when the Event of it has expired", () => {
    const before = { lastTermination: at("a", 1, "LivenessFailed") } as ProjectStatus;
    expect(last([at("a", 1)], before)?.reason).toBe("LivenessFailed");
    expect(last([at("a", 2)], before)?.reason).toBe("Error");
    expect(last([at("b", 1)], before)?.reason).toBe("Error");
    const early = { lastTermination: at("a", 1) } as ProjectStatus;
    expect(last([at("a", 1, "LivenessFailed")], early)?.reason).toBe("LivenessFailed");
  });
});
