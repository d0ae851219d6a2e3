/** How a build stands, from its pod. Pure. */

import {
  type Container,
  containerSteps,
  containers,
  exitCodes,
  type Failure,
  type FailureCode,
  failure,
  failures,
  parseStepResult,
  type Step,
  type StepResult,
} from "@slipway/builder/contract";
import type { KubernetesObject, ObjectMeta } from "@slipway/controller-runtime";

interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: { exitCode: number; reason?: string; message?: string; finishedAt?: string };
}

/** The part of a build's pod that is read. */
export interface BuildPod extends KubernetesObject {
  metadata: ObjectMeta & { name: string };
  status?: {
    phase?: string;
    reason?: string;
    message?: string;
    containerStatuses?: { name: string; state?: ContainerState }[];
  };
}

/** What the steps have told so far. */
export type Told = Pick<StepResult, "commitSha" | "commitMessage" | "digest">;

export type PodState =
  | { state: "waiting"; cannotPull: boolean }
  | { state: "running"; step: Step; told: Told }
  | { state: "done"; told: Told & { digest: string } }
  | {
      state: "failed";
      step: Step;
      told: Told;
      failure: Failure;
      /** The platform's fault, or a passing one: another try may succeed. */
      passing: boolean;
      endedAt?: string;
    };

/** The image, or what is beside it, is not to be had. */
const CANNOT_PULL =
  /^(ErrImagePull|ImagePullBackOff|InvalidImageName|CreateContainerConfigError|CreateContainerError)$/;
const DISK = /ephemeral|emptydir|local storage/i;

export function podState(pod: BuildPod): PodState {
  const told: Told = {};
  let current: Container | undefined;
  for (const container of containers) {
    const ended = stateOf(pod, container)?.terminated;
    if (ended === undefined) {
      // Those after it wait for it. One that has ended all the same was let go by the client's code, and counts as nothing yet.
      current = container;
      break;
    }
    const result = resultOf(container, ended.message);
    tell(told, result);
    if (ended.exitCode !== exitCodes.done) {
      const { reason } = ended;
      const why = whyFailed(pod, { exitCode: ended.exitCode, reason, result });
      return {
        state: "failed",
        step: result?.step ?? stepOf(container),
        told,
        ...why,
        endedAt: ended.finishedAt,
      };
    }
  }
  const { phase } = pod.status ?? {};
  if (phase === "Failed" || (phase === "Succeeded" && current !== undefined)) {
    return { state: "failed", step: stepOf(current ?? "push"), told, ...whyFailed(pod, {}) };
  }
  if (current === undefined) {
    const { digest } = told;
    return digest === undefined
      ? { state: "failed", step: "push", told, ...engineFailed("It told no digest.") }
      : { state: "done", told: { ...told, digest } };
  }
  const cannotPull = containers.some((one) => CANNOT_PULL.test(stateOf(pod, one)?.waiting?.reason ?? ""));
  const hasBegun = current !== "fetch" || stateOf(pod, current)?.running !== undefined;
  return hasBegun && !cannotPull
    ? { state: "running", step: stepOf(current), told }
    : { state: "waiting", cannotPull };
}

/** The step that a container is there for: planning is a moment of the build's. */
const stepOf = (container: Container): Step => containerSteps[container].at(-1) ?? "build";

/** Containers that have begun, with whether they have ended: those that there are logs of. */
export function startedContainers(pod: BuildPod): { container: Container; ended: boolean }[] {
  return containers.flatMap((container): { container: Container; ended: boolean }[] => {
    const state = stateOf(pod, container);
    if (state?.terminated) {
      return [{ container, ended: true }];
    }
    return state?.running ? [{ container, ended: false }] : [];
  });
}

/** Whether no process of it runs any more, as its node has told of each of them. */
export const hasEnded = (pod: BuildPod): boolean =>
  containers.every((container) => stateOf(pod, container)?.terminated !== undefined);

function stateOf({ status }: BuildPod, container: Container): ContainerState | undefined {
  return status?.containerStatuses?.find(({ name }) => name === container)?.state;
}

/** What a container says of a step of another one counts as nothing. */
function resultOf(container: Container, message: string | undefined): StepResult | undefined {
  const result = parseStepResult(message);
  return result && containerSteps[container].includes(result.step) ? result : undefined;
}

/** Steps of the client's own run beside the runner of `build` and may forge its result: only who knows is believed. */
function tell(told: Told, result: StepResult | undefined): void {
  if (result?.step === "fetch") {
    const { commitSha, commitMessage } = result;
    if (/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(commitSha ?? "")) {
      told.commitSha = commitSha;
    }
    if (commitMessage !== undefined) {
      told.commitMessage = commitMessage;
    }
  }
  if (result?.step === "push" && result.digest !== undefined) {
    told.digest = result.digest;
  }
}

interface Ended {
  exitCode?: number;
  reason?: string;
  result?: StepResult;
}

/** What the step itself has classified, then what happened to the pod, then what happened to the container. */
function whyFailed(
  { status }: BuildPod,
  { exitCode, reason, result }: Ended,
): { failure: Failure; passing: boolean } {
  const own = ownFailure(result);
  if (exitCode === exitCodes.failed && own) {
    return { failure: own, passing: false };
  }
  switch (status?.reason) {
    case "DeadlineExceeded":
      return { failure: failure("BUILD_TIMEOUT"), passing: false };
    case "Evicted":
      return DISK.test(status.message ?? "")
        ? { failure: failure("BUILD_DISK_FULL"), passing: false }
        : engineFailed("Its node had no room for it.");
  }
  if (reason === "OOMKilled") {
    return { failure: failure("BUILD_OUT_OF_MEMORY"), passing: false };
  }
  if (own) {
    return { failure: own, passing: true };
  }
  return engineFailed(
    exitCode === undefined ? "Its pod was stopped." : `The step ended with exit code ${exitCode}.`,
  );
}

const engineFailed = (said: string) => ({ failure: failure("BUILD_ENGINE_FAILED", { said }), passing: true });

function ownFailure(result: StepResult | undefined): Failure | undefined {
  const { code, message = "" } = result ?? {};
  if (code === undefined) {
    return undefined;
  }
  // A code that is none may come from a forged result.
  return Object.hasOwn(failures, code)
    ? { code: code as FailureCode, message }
    : failure("BUILD_FAILED_UNCLASSIFIED");
}
