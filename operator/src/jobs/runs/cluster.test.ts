import { describe, expect, test } from "vitest";
import { type RunPod, readContainer } from "./cluster.ts";

const pod = (status: object, meta: object = {}, nodeName: string | undefined = "node"): RunPod =>
  ({ metadata: { name: "p", namespace: "n", ...meta }, spec: { nodeName }, status }) as RunPod;
const app = (state: object, phase = "Running") => ({ phase, containerStatuses: [{ name: "app", state }] });
const at = (text: string) => new Date(text);

describe("a container", () => {
  test.each([
    ["a pod without a reported status", pod({}), { state: "pending" }],
    ["one that pulls", pod(app({ waiting: { reason: "Pulling" } }, "Pending")), { state: "pending" }],
    [
      "one that runs",
      pod(app({ running: { startedAt: "2026-01-01T00:00:01Z" } })),
      { state: "running", startedAt: at("2026-01-01T00:00:01Z") },
    ],
    [
      "one that ended",
      pod(
        app({
          terminated: {
            exitCode: 0,
            reason: "Completed",
            startedAt: "2026-01-01T00:00:01Z",
            finishedAt: "2026-01-01T00:00:09Z",
          },
        }),
      ),
      {
        state: "ended",
        startedAt: at("2026-01-01T00:00:01Z"),
        finishedAt: at("2026-01-01T00:00:09Z"),
        exitCode: 0,
        reason: "Completed",
      },
    ],
    [
      "one that the runtime could not start",
      pod(
        app({
          terminated: {
            exitCode: 128,
            reason: "StartError",
            startedAt: "1970-01-01T00:00:00Z",
            finishedAt: "2026-01-01T00:00:09Z",
          },
        }),
      ),
      { state: "ended", finishedAt: at("2026-01-01T00:00:09Z"), exitCode: 128, reason: "StartError" },
    ],
    [
      "one that its kubelet lost",
      pod(
        app({
          terminated: { exitCode: 137, reason: "ContainerStatusUnknown", startedAt: null, finishedAt: null },
        }),
      ),
      { state: "ended", exitCode: 137, reason: "ContainerStatusUnknown" },
    ],
    [
      "one whose node was deleted",
      pod({ ...app({ running: { startedAt: "2026-01-01T00:00:01Z" } }, "Failed"), reason: "NodeLost" }),
      { state: "ended", startedAt: at("2026-01-01T00:00:01Z"), reason: "NodeLost" },
    ],
    [
      "a pod that its node refused",
      pod({ phase: "Failed", reason: "Evicted" }),
      { state: "ended", reason: "Evicted" },
    ],
    [
      "a deleted pod that no node has",
      pod({ phase: "Pending" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }, ""),
      { state: "ended" },
    ],
    [
      "a deleted pod that a node has",
      pod({ phase: "Pending" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      { state: "pending" },
    ],
  ])("of %s", (_what, pod, facts) => {
    expect(readContainer(pod)).toEqual(facts);
  });
});
