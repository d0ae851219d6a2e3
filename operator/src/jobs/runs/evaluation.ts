/** The state of an admitted run, and whether it has to be stopped. Pure. */

import { isOneOff, type JobRun } from "@slipway/crds";
import {
  type ContainerFacts,
  isReady,
  type Job,
  type RunNode,
  type RunPod,
  readContainer,
} from "./cluster.ts";
import { limitMsOf } from "./run.ts";
import type { JobRunSettings } from "./settings.ts";

/** The observed facts of a run. */
export interface RunView {
  run: JobRun;
  job: Job | undefined;
  pod: RunPod | undefined;
  /** Node of the pod. */
  node: RunNode | undefined;
  admittedAt: Date;
  now: Date;
  settings: JobRunSettings;
}

export type RunEvaluation =
  /** Its container has not started. */
  | { is: "pending"; stop: boolean; nodeSilent: boolean; stopAt: Date }
  | {
      is: "running";
      startedAt: Date;
      stop: boolean;
      overLimit: boolean;
      nodeSilent: boolean;
      stopAt: Date;
    }
  | { is: "ended"; facts: Extract<ContainerFacts, { state: "ended" }> }
  /** It has no pod, although it should have one: it has to be read live. */
  | { is: "missing" };

/** A container's start is reported in whole seconds: it may have begun almost one later. */
const STARTED_WITHIN_MS = 1_000;

export function evaluateRun(view: RunView): RunEvaluation {
  const { run, pod, node, now } = view;
  const cancelled = run.spec.cancelRequestedAt !== undefined;
  if (!pod) {
    if (!awaitsPod(view)) {
      return { is: "missing" };
    }
    return pending(view, cancelled, false);
  }
  const facts = readContainer(pod);
  const nodeSilent = pod.spec?.nodeName !== undefined && !isReady(node);
  switch (facts.state) {
    case "ended":
      return { is: "ended", facts };
    case "pending":
      return pending(view, cancelled, nodeSilent);
    case "running": {
      const stopAt = limitOf(facts.startedAt, view);
      const overLimit = now >= stopAt;
      const { startedAt } = facts;
      return { is: "running", startedAt, stop: overLimit || cancelled, overLimit, nodeSilent, stopAt };
    }
  }
}

/** Whether a Job may still create its pod. */
function awaitsPod({ run, job }: RunView): boolean {
  if (!job || job.metadata.deletionTimestamp !== undefined || run.status?.podUid !== undefined) {
    return false;
  }
  if (isOneOff(run) && job.metadata.uid !== run.status?.jobUid) {
    // It is not the Job that may start.
    return false;
  }
  return !job.status?.conditions?.some(
    ({ type, status }) => (type === "Failed" || type === "Complete") && status === "True",
  );
}

function pending(
  { admittedAt, now, settings }: RunView,
  cancelled: boolean,
  nodeSilent: boolean,
): RunEvaluation {
  const stopAt = new Date(admittedAt.getTime() + settings.startDeadlineMs);
  return { is: "pending", stop: cancelled || now >= stopAt, nodeSilent, stopAt };
}

/**
 * When a run's time is over: the limit after its container's start. A node whose clock is wrong neither shortens that, for
 * nothing starts before its admission, nor stretches it, for nothing starts after the deadline for starting.
 */
function limitOf(startedAt: Date, { run, admittedAt, settings }: RunView): Date {
  const earliest = admittedAt.getTime() - STARTED_WITHIN_MS;
  const latest = admittedAt.getTime() + settings.startDeadlineMs;
  const start = Math.min(Math.max(startedAt.getTime(), earliest), latest);
  return new Date(start + limitMsOf(run, settings) + STARTED_WITHIN_MS);
}
