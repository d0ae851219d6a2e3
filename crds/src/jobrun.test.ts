import { expect, test } from "vitest";
import type { Condition } from "./conditions.ts";
import { isRunPending, type JobRun, type JobRunCondition } from "./jobrun.ts";

const condition = (type: JobRunCondition, status: Condition["status"]): Condition => ({
  type,
  status,
  reason: type,
  message: "",
  observedGeneration: 1,
  lastTransitionTime: "2026-01-01T00:00:00Z",
});

test.each<[string, JobRun["status"], boolean]>([
  ["that was never reconciled", undefined, true],
  ["that was admitted", { conditions: [condition("Admitted", "True")] }, true],
  ["that runs", { phase: "running" }, true],
  ["that has ended", { phase: "failed", conditions: [condition("Finished", "True")] }, true],
  ["whose charge is recorded", { phase: "failed", chargedAt: "2026-01-01T00:01:00Z" }, false],
  ["that was rejected", { conditions: [condition("Admitted", "False")] }, false],
  [
    "that never started",
    { conditions: [condition("Admitted", "True"), condition("Finished", "False")] },
    false,
  ],
])("a deletion waits for a run %s: %s", (_, status, pending) => {
  const run: JobRun = {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "JobRun",
    metadata: { name: "p1-1", namespace: "slipway-org-alpha" },
    spec: { projectRef: { name: "p1" }, trigger: "schedule", scheduledAt: "2026-01-01T00:00:00Z" },
    status,
  };
  expect(isRunPending(run)).toBe(pending);
});
