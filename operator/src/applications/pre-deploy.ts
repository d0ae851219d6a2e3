/** Reads what has become of a pre-deploy command from its Job and its pod. Pure. */

import { PRE_DEPLOY_LOG_MAX_BYTES, type PreDeployRun } from "@slipway/crds";
import type { Job } from "../jobs/runs/cluster.ts";
import { lastLinesOf } from "../logs/log-tail.ts";
import type { Finding } from "../projects/status.ts";
import { appStatus, type PodView, podProblem } from "./pod-problem.ts";

/** A run as observed; one that has failed says why. */
export interface ObservedRun {
  run: Pick<PreDeployRun, "status" | "startedAt" | "finishedAt" | "observedAt" | "exitCode">;
  failure?: string;
}

/** Whether a Job has this condition. */
const hasCondition = ({ status }: Job, type: "Complete" | "Failed"): boolean =>
  status?.conditions?.some((condition) => condition.type === type && condition.status === "True") === true;

/**
 * Reads a run. It has ended once its Job says so, which awaits the end of every pod.
 * @param timeoutSeconds for the words of a failure
 * @param now RFC 3339: when the end is observed, and the end of one whose container has none
 */
export function observeRun(
  job: Job,
  pod: PodView | undefined,
  { timeoutSeconds, now }: { timeoutSeconds: number; now: string },
): ObservedRun {
  const { running, terminated } = (pod && appStatus(pod)?.state) ?? {};
  const startedAt = terminated?.startedAt ?? running?.startedAt;
  const started = isMoment(startedAt) ? { startedAt } : {};
  const isComplete = hasCondition(job, "Complete");
  if (!isComplete && !hasCondition(job, "Failed")) {
    return { run: { status: running ? "running" : "pending", ...started } };
  }
  const finishedAt = isMoment(terminated?.finishedAt) ? terminated.finishedAt : now;
  const exitCode = terminated?.exitCode ?? (isComplete ? 0 : undefined);
  const run = { ...started, finishedAt, observedAt: now, ...(exitCode === undefined ? {} : { exitCode }) };
  return isComplete
    ? { run: { ...run, status: "succeeded" } }
    : { run: { ...run, status: "failed" }, failure: explainFailure(job, pod, timeoutSeconds) };
}

/** Kubelets report 1970 for what has not happened. */
const isMoment = (text: string | undefined): text is string => Date.parse(text ?? "") > 0;

function explainFailure(job: Job, pod: PodView | undefined, timeoutSeconds: number): string {
  const { state, lastState } = (pod && appStatus(pod)) ?? {};
  const { terminated } = state ?? {};
  const jobIsLate = job.status?.conditions?.some(({ reason }) => reason === "DeadlineExceeded") === true;
  const isLate = jobIsLate || pod?.status?.reason === "DeadlineExceeded";
  const hasRun = isMoment(terminated?.startedAt) || isMoment(lastState?.terminated?.startedAt);
  if (isLate && hasRun) {
    return `The pre-deploy command did not end within ${timeoutSeconds} seconds.`;
  }
  if (isLate) {
    const problem = pod && podProblem(pod);
    const cause = problem === undefined || terminated ? "" : ` ${problem.message}`;
    return `The pre-deploy command did not start within ${timeoutSeconds} seconds.${cause}`;
  }
  if (terminated?.reason === "OOMKilled") {
    return "The pre-deploy command used more memory than the plan has.";
  }
  if (NEVER_STARTED.has(terminated?.reason ?? "")) {
    return "The pre-deploy command could not be started: it may not exist in the image.";
  }
  return terminated?.exitCode === undefined
    ? "The pre-deploy command was stopped before it had ended."
    : `The pre-deploy command ended with exit code ${terminated.exitCode}.`;
}

/** Reasons by which the kubelet and containerd report a process that was never executed. */
const NEVER_STARTED: ReadonlySet<string> = new Set(["StartError", "ContainerCannotRun"]);

/** Where a run that has not ended is, as the reason why the deployment has no instances yet. */
export function progressOf(pod: PodView | undefined): Finding {
  const problem = pod && appStatus(pod)?.state?.terminated === undefined ? podProblem(pod) : undefined;
  return problem ?? { reason: "RunningPreDeploy", message: "The pre-deploy command is running." };
}

/**
 * The end of a run's log as it is kept.
 * @param text of the log, or what the kubelet keeps of it
 */
export function keptLines(text: string): Pick<PreDeployRun, "lastLines"> {
  const lastLines = lastLinesOf(text, PRE_DEPLOY_LOG_MAX_BYTES);
  return lastLines === "" ? {} : { lastLines };
}
