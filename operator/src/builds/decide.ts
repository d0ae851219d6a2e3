/** What is done next for a build, from all that is known of it. Pure. */

import { type Failure, failure } from "@slipway/builder/contract";
import type { Build } from "@slipway/crds";
import type { PodState, Told } from "./pod-state.ts";
import { isEnded } from "./queue.ts";

export interface Observed {
  build: Build;
  /** A newer build of the project was asked for. */
  hasNewer: boolean;
  /** Where the project stands with it. */
  project: ProjectView | undefined;
  /** Which try the pod is of; 0 while there was none. */
  attempt: number;
  /** Of that try; undefined when the apiserver has none. */
  pod: { state: PodState; createdAt: string } | undefined;
  /** Pods of other builds of the project, or of earlier tries, are still there. */
  hasOtherPods: boolean;
  isItsTurn: boolean;
  /** All that the pod's containers wrote stands in the ledger, or is lost. */
  isLogKept: boolean;
  now: Date;
}

export interface ProjectView {
  /** Its image was given to the project to run. */
  isHandedOver: boolean;
  /** The image of a newer build was. */
  isOvertaken: boolean;
  /** What became of the image that is to run. */
  rollout: "waiting" | "served" | "failed";
  rolloutMessage?: string;
}

export interface DecideSettings {
  tries: number;
  limits: { deadlineSeconds: number; publishSeconds: number };
}

export type Decision =
  /** Nothing is left to do but to tidy up. */
  | { do: "rest" }
  | {
      do: "wait";
      reason: "Queued" | "Waiting" | "Building" | "KeepingLog" | "Publishing";
      told?: Told;
      step?: RunStep;
      afterMs?: number;
    }
  /** Pods of others, or of the try before, are to go first. */
  | { do: "clear" }
  | { do: "start"; attempt: number }
  | { do: "built"; told: Told & { digest: string } }
  | { do: "handOver" }
  | { do: "end"; phase: "success" | "failed" | "superseded"; failure?: Failure; told?: Told; step?: RunStep };

type RunStep = NonNullable<NonNullable<Build["status"]>["step"]>;

/** An image that cannot be pulled, or a pod that no node takes, is given up after so long. */
const PULL_MS = 300_000;
/** Before the second try, twice as much before the third, and so on: four tries outlast a Git server that is away for a minute. */
const PAUSE_MS = 15_000;

export function decide(observed: Observed, settings: DecideSettings): Decision {
  const { build, project, hasNewer, attempt } = observed;
  if (isEnded(build)) {
    return { do: "rest" };
  }
  // Its image may be serving soon: what becomes of that is what becomes of it.
  if (!project || project.isOvertaken || (hasNewer && !project.isHandedOver)) {
    return { do: "end", phase: "superseded" };
  }
  if (build.status?.step === "publish") {
    return publish(observed, project, settings);
  }
  if (attempt === 0) {
    return observed.isItsTurn ? start(observed, 1) : { do: "wait", reason: "Queued" };
  }
  return followPod(observed, settings);
}

function followPod(observed: Observed, settings: DecideSettings): Decision {
  const { pod, now } = observed;
  if (!pod) {
    return retry(observed, settings, {
      failure: failure("BUILD_ENGINE_FAILED", { said: "Its pod is gone." }),
    });
  }
  const { state } = pod;
  switch (state.state) {
    case "waiting": {
      const waited = now.getTime() - Date.parse(pod.createdAt);
      const most = state.cannotPull ? PULL_MS : settings.limits.deadlineSeconds * 1_000;
      const said = state.cannotPull ? "Its image cannot be pulled." : "No node had room for it.";
      return waited < most
        ? { do: "wait", reason: "Waiting", afterMs: most - waited }
        : retry(observed, settings, { failure: failure("BUILD_ENGINE_FAILED", { said }) });
    }
    case "running":
      return { do: "wait", reason: "Building", step: state.step, told: state.told };
    case "done":
      return observed.isLogKept ? { do: "built", told: state.told } : { do: "wait", reason: "KeepingLog" };
    case "failed": {
      if (!observed.isLogKept) {
        return { do: "wait", reason: "KeepingLog", step: state.step, told: state.told };
      }
      const { failure: why, step, told, endedAt } = state;
      return state.passing
        ? retry(observed, settings, { failure: why, step, told, endedAt })
        : { do: "end", phase: "failed", failure: why, step, told };
    }
  }
}

interface Passing {
  failure: Failure;
  step?: RunStep;
  told?: Told;
  endedAt?: string;
}

/** Another try, after a pause, as often as there may be. */
function retry(observed: Observed, { tries }: DecideSettings, { endedAt, ...why }: Passing): Decision {
  const { attempt, now } = observed;
  if (attempt >= tries) {
    return { do: "end", phase: "failed", ...why };
  }
  const pause = PAUSE_MS * attempt - (now.getTime() - (Date.parse(endedAt ?? "") || 0));
  return pause > 0
    ? { do: "wait", reason: "Waiting", step: why.step, told: why.told, afterMs: pause }
    : start(observed, attempt + 1);
}

/** A project's builds share its cache, so its pods never run side by side. */
function start({ hasOtherPods, pod, attempt: current }: Observed, attempt: number): Decision {
  const isOldOne = attempt !== current && pod !== undefined;
  return hasOtherPods || isOldOne ? { do: "clear" } : { do: "start", attempt };
}

function publish({ build, now }: Observed, project: ProjectView, { limits }: DecideSettings): Decision {
  if (!project.isHandedOver) {
    return { do: "handOver" };
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
