import { PRE_DEPLOY_LOG_MAX_BYTES } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import type { Job } from "../jobs/runs/cluster.ts";
import type { PodView } from "./pod-problem.ts";
import { keptLines, observeRun, progressOf } from "./pre-deploy.ts";

const startedAt = "2026-01-01T00:00:00Z";
const finishedAt = "2026-01-01T00:00:05Z";
const context = { timeoutSeconds: 60, now: "2026-01-01T00:00:09Z" };

const job = (type?: string, reason?: string): Job => ({
  metadata: { name: "p1-pre-deploy-0123456789", namespace: "slipway-org-alpha" },
  status: { conditions: type === undefined ? [] : [{ type, status: "True", ...(reason ? { reason } : {}) }] },
});
const pod = (state: object, status: PodView["status"] = {}): PodView => ({
  metadata: { name: "one" },
  status: { ...status, containerStatuses: [{ name: "app", state }] },
});
const terminated = (exitCode: number, reason = "Error") => ({
  terminated: { exitCode, reason, startedAt, finishedAt },
});

describe("observeRun", () => {
  test.each<[string, Job, PodView | undefined, object]>([
    ["has no pod yet", job(), undefined, { status: "pending" }],
    ["pulls", job(), pod({ waiting: { reason: "ContainerCreating" } }), { status: "pending" }],
    ["runs", job(), pod({ running: { startedAt } }), { status: "running", startedAt }],
    ["has ended for its pod alone", job(), pod(terminated(3)), { status: "pending", startedAt }],
    ["is about to fail", job("FailureTarget"), pod(terminated(3)), { status: "pending", startedAt }],
  ])("is under way when it %s", (_, seen, its, run) => {
    expect(observeRun(seen, its, context)).toEqual({ run });
  });

  test("has succeeded once its Job is complete, also without a pod", () => {
    const observedAt = context.now;
    const run = { status: "succeeded", exitCode: 0, startedAt, finishedAt, observedAt };
    expect(observeRun(job("Complete"), pod(terminated(0, "Completed")), context)).toEqual({ run });
    expect(observeRun(job("Complete"), undefined, context)).toEqual({
      run: { status: "succeeded", exitCode: 0, finishedAt: observedAt, observedAt },
    });
  });

  const late = { reason: "DeadlineExceeded" };
  const pulling = { waiting: { reason: "ImagePullBackOff" } };
  // Shows: docs/applications.md#pre-deploy-command: an exit code other than 0, a process that
  // Shows: docs/applications.md#pre-deploy-command: a command that has not ended in time is sent
  test.each<[string, Job, PodView | undefined]>([
    ["ended with exit code 3.", job("Failed"), pod(terminated(3))],
    ["used more memory than the plan has.", job("Failed"), pod(terminated(137, "OOMKilled"))],
    ["could not be started: it may not", job("Failed"), pod(terminated(128, "StartError"))],
    ["did not end within 60 seconds.", job("Failed"), pod(terminated(137), late)],
    ["did not start within 60 seconds. The image cannot be", job("Failed"), pod(pulling, late)],
    ["did not start within 60 seconds.", job("Failed", "DeadlineExceeded"), undefined],
    ["was stopped before it had ended.", job("Failed"), undefined],
  ])("has failed: it %s", (words, seen, its) => {
    const { run, failure } = observeRun(seen, its, context);
    expect(run.status).toBe("failed");
    expect(failure).toContain(`The pre-deploy command ${words}`);
  });

  test("has no moment that a kubelet reports of what has not happened", () => {
    const never = { terminated: { exitCode: 128, startedAt: "1970-01-01T00:00:00Z", finishedAt } };
    expect(observeRun(job("Failed"), pod(never), context).run).toEqual({
      status: "failed",
      exitCode: 128,
      finishedAt,
      observedAt: context.now,
    });
  });
});

test("an image that cannot be pulled is reported while it waits, and the end of a process is not", () => {
  expect(progressOf(pod({ waiting: { reason: "ErrImagePull" } })).reason).toBe("ImagePullFailed");
  for (const state of [{ running: { startedAt } }, terminated(3)]) {
    expect(progressOf(pod(state)).reason).toBe("RunningPreDeploy");
  }
});

test("the end of a log is kept, whole characters and no control characters", () => {
  expect(keptLines("\u001b[1mone\u001b[0m\ntwo\n\n")).toEqual({ lastLines: "one\ntwo" });
  expect(keptLines("\n")).toEqual({});
  const { lastLines = "" } = keptLines(`begin ${"ü".repeat(PRE_DEPLOY_LOG_MAX_BYTES)}`);
  expect(Buffer.byteLength(lastLines)).toBe(PRE_DEPLOY_LOG_MAX_BYTES);
  const { lastLines: odd = "" } = keptLines(`${"ü".repeat(PRE_DEPLOY_LOG_MAX_BYTES)}!`);
  expect(odd).toMatch(/^ü+!$/);
});
