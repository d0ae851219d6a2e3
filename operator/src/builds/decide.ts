/** Decides the next action for a build from its observed state. Pure. */

import { type Failure, failure } from "@slipway/builder/contract";
import type { Build } from "@slipway/crds";
import type { PodState, RanTime, StepReport } from "./pod-state.ts";
import { isEnded } from "./queue.ts";

export interface Observation {
  build: Build;
  /** A newer build of the project was requested. */
  hasNewer: boolean;
  /** What its project has done with it. */
  project: ProjectState | undefined;
  /** Number of the attempt; 0 before the first. */
  attempt: number;
  /** Of that attempt; undefined when the apiserver has none. */
  pod: { state: PodState; createdAt: string; ran?: RanTime | undefined } | undefined;
  /** Pods of other builds of the project, or of earlier attempts, still exist. */
  hasOtherPods: boolean;
  isAdmissible: boolean;
  /** The log of the pod's terminated containers is in the ledger, or lost. */
  isLogStored: boolean;
  now: Date;
}

export interface ProjectState {
  /** The project runs, or rolls out, its image. */
  isDeployed: boolean;
  /** The project has the image of a newer build. */
  isSuperseded: boolean;
  /** The rollout of the build's image. */
  rollout: "waiting" | "served" | "failed";
  rolloutMessage?: string;
}

export interface DecideSettings {
  tries: number;
  limits: { deadlineSeconds: number; publishSeconds: number };
}

export type Decision =
  /** The build has ended: only cleanup is left. */
  | { do: "cleanUp" }
  | {
      do: "wait";
      reason: "Queued" | "Waiting" | "Building" | "KeepingLog" | "Publishing";
      report?: StepReport;
      step?: RunStep;
      afterMs?: number;
    }
  /** Pods of other builds, or of the attempt before, must be deleted first. */
  | { do: "deletePods" }
  | { do: "start"; attempt: number }
  | { do: "built"; report: StepReport & { digest: string } }
  | { do: "deployImage" }
  | {
      do: "end";
      phase: "success" | "failed" | "superseded";
      failure?: Failure;
      report?: StepReport;
      step?: RunStep;
    };

type RunStep = NonNullable<NonNullable<Build["status"]>["step"]>;

/** An attempt whose image cannot be pulled fails after so long. */
const UNPULLABLE_TIMEOUT_MS = 300_000;
/** Before the second attempt, twice as long before the third, and so on: four attempts outlast a minute without the Git server. */
const RETRY_BACKOFF_MS = 15_000;

export function decide(observed: Observation, settings: DecideSettings): Decision {
  const { build, project, hasNewer, attempt } = observed;
  if (isEnded(build)) {
    return { do: "cleanUp" };
  }
  // A deployed image may be serving soon: its rollout decides the result.
  if (!project || project.isSuperseded || (hasNewer && !project.isDeployed)) {
    return { do: "end", phase: "superseded" };
  }
  if (build.status?.step === "publish") {
    return publish(observed, project, settings);
  }
  if (attempt === 0) {
    return observed.isAdmissible ? start(observed, 1) : { do: "wait", reason: "Queued" };
  }
  return followPod(observed, settings);
}

function followPod(observed: Observation, settings: DecideSettings): Decision {
  const { pod, now } = observed;
  if (!pod) {
    return retry(observed, settings, {
      failure: failure("BUILD_ENGINE_FAILED", { said: "Its pod was deleted." }),
    });
  }
  const { state } = pod;
  switch (state.state) {
    case "waiting": {
      const waited = now.getTime() - Date.parse(pod.createdAt);
      const most = state.cannotPull ? UNPULLABLE_TIMEOUT_MS : settings.limits.deadlineSeconds * 1_000;
      const said = state.cannotPull ? "Its image cannot be pulled." : "No node had room for it.";
      return waited < most
        ? { do: "wait", reason: "Waiting", afterMs: most - waited }
        : retry(observed, settings, { failure: failure("BUILD_ENGINE_FAILED", { said }) });
    }
    case "running":
      return { do: "wait", reason: "Building", step: state.step, report: state.report };
    case "done":
      return observed.isLogStored
        ? { do: "built", report: state.report }
        : { do: "wait", reason: "KeepingLog" };
    case "failed": {
      if (!observed.isLogStored) {
        return { do: "wait", reason: "KeepingLog", step: state.step, report: state.report };
      }
      const { failure: why, step, report, endedAt } = state;
      return state.passing
        ? retry(observed, settings, { failure: why, step, report, endedAt })
        : { do: "end", phase: "failed", failure: why, step, report };
    }
  }
}

interface Transient {
  failure: Failure;
  step?: RunStep;
  report?: StepReport;
  endedAt?: string;
}

/** Another attempt after a backoff, up to the limit. */
function retry(observed: Observation, { tries }: DecideSettings, { endedAt, ...why }: Transient): Decision {
  const { attempt, now } = observed;
  if (attempt >= tries) {
    return { do: "end", phase: "failed", ...why };
  }
  const pause = RETRY_BACKOFF_MS * attempt - (now.getTime() - (Date.parse(endedAt ?? "") || 0));
  return pause > 0
    ? { do: "wait", reason: "Waiting", step: why.step, report: why.report, afterMs: pause }
    : start(observed, attempt + 1);
}

/** A project's builds share its cache, so its pods never run concurrently. */
function start({ hasOtherPods, pod, attempt: current }: Observation, attempt: number): Decision {
  const isOldOne = attempt !== current && pod !== undefined;
  return hasOtherPods || isOldOne ? { do: "deletePods" } : { do: "start", attempt };
}

function publish({ build, now }: Observation, project: ProjectState, { limits }: DecideSettings): Decision {
  if (!project.isDeployed) {
    return { do: "deployImage" };
  }
  if (project.rollout === "served") {
    return { do: "end", phase: "success" };
  }
  if (project.rollout === "failed") {
    const why = failure("PROJECT_PUBLISH_FAILED", { said: project.rolloutMessage });
    return { do: "end", phase: "failed", failure: why, step: "publish" };
  }
  const since = build.status?.conditions?.find(
    ({ type, status }) => type === "Succeeded" && status === "True",
  )?.lastTransitionTime;
  const left = limits.publishSeconds * 1_000 - (now.getTime() - (Date.parse(since ?? "") || now.getTime()));
  return left > 0
    ? { do: "wait", reason: "Publishing", step: "publish", afterMs: left }
    : { do: "end", phase: "failed", failure: failure("PROJECT_PUBLISH_TIMEOUT"), step: "publish" };
}
