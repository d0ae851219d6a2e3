/** The state of a build's pod. Pure. */

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
  terminated?: {
    exitCode: number;
    reason?: string;
    message?: string;
    startedAt?: string | null;
    finishedAt?: string | null;
  };
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

/** What the steps have reported so far. */
export type StepReport = Pick<StepResult, "commitSha" | "commitMessage" | "digest">;

export type PodState =
  | { state: "waiting"; cannotPull: boolean }
  | { state: "running"; step: Step; report: StepReport }
  | { state: "done"; report: StepReport & { digest: string } }
  | {
      state: "failed";
      step: Step;
      report: StepReport;
      failure: Failure;
      /** A transient failure, or one of the platform: a retry may succeed. */
      passing: boolean;
      endedAt?: string;
    };

/** When containers of a pod ran, by its node's clock. */
export interface RanTime {
  /** The first of them started. */
  from: string;
  /** The one that failed ended, or the last one; undefined while they run. */
  until?: string;
}

/** Reasons of a container whose image or configuration is unavailable. */
const CANNOT_PULL =
  /^(ErrImagePull|ImagePullBackOff|InvalidImageName|CreateContainerConfigError|CreateContainerError)$/;
const DISK = /ephemeral|emptydir|local storage/i;

export function podState(pod: BuildPod): PodState {
  const report: StepReport = {};
  let current: Container | undefined;
  for (const container of containers) {
    const ended = stateOf(pod, container)?.terminated;
    if (ended === undefined) {
      // Later containers wait for it. One that has terminated already was released by the client's code, and does not count yet.
      current = container;
      break;
    }
    const result = resultOf(container, ended.message);
    mergeReport(report, result);
    if (ended.exitCode !== exitCodes.done) {
      const { reason } = ended;
      const why = whyFailed(pod, { exitCode: ended.exitCode, reason, result });
      return {
        state: "failed",
        step: result?.step ?? stepOf(container),
        report,
        ...why,
        endedAt: ended.finishedAt ?? undefined,
      };
    }
  }
  const { phase } = pod.status ?? {};
  if (phase === "Failed" || (phase === "Succeeded" && current !== undefined)) {
    return { state: "failed", step: stepOf(current ?? "push"), report, ...whyFailed(pod, {}) };
  }
  if (current === undefined) {
    const { digest } = report;
    return digest === undefined
      ? { state: "failed", step: "push", report, ...engineFailed("It reported no digest.") }
      : { state: "done", report: { ...report, digest } };
  }
  const cannotPull = containers.some((one) => CANNOT_PULL.test(stateOf(pod, one)?.waiting?.reason ?? ""));
  const hasBegun = current !== "fetch" || stateOf(pod, current)?.running !== undefined;
  return hasBegun && !cannotPull
    ? { state: "running", step: stepOf(current), report }
    : { state: "waiting", cannotPull };
}

/** The main step of a container: planning is a short part of `build`. */
const stepOf = (container: Container): Step => containerSteps[container].at(-1) ?? "build";

/** Containers that have started, which have logs, and whether they have terminated. */
export function startedContainers(pod: BuildPod): { container: Container; ended: boolean }[] {
  return containers.flatMap((container): { container: Container; ended: boolean }[] => {
    const state = stateOf(pod, container);
    if (state?.terminated) {
      return [{ container, ended: true }];
    }
    return state?.running ? [{ container, ended: false }] : [];
  });
}

/**
 * When the containers of a pod ran, by its node: until the one that failed ended, or the last one. Undefined before one has started; what began before
 * an image was pulled, or a node had room, is not in it.
 */
export function ranTime(pod: BuildPod, state: PodState): RanTime | undefined {
  const states = containers.flatMap((container) => stateOf(pod, container) ?? []);
  const [from] = instants(states.map((one) => one.running?.startedAt ?? one.terminated?.startedAt));
  if (from === undefined) {
    return undefined;
  }
  const failedAt = state.state === "failed" ? state.endedAt : undefined;
  const isOver = state.state === "done" || state.state === "failed";
  const ends = states.some(({ running }) => running)
    ? []
    : instants(states.map((one) => one.terminated?.finishedAt));
  return { from, until: failedAt ?? (isOver ? ends.at(-1) : undefined) };
}

/** Those that are known, the earliest first: of a container that never started a node may say 1970. */
const instants = (texts: readonly (string | null | undefined)[]): string[] =>
  texts
    .flatMap((text) => (text && Date.parse(text) > 0 ? [text] : []))
    .sort((a, b) => Date.parse(a) - Date.parse(b));

/** Whether all containers have terminated. */
export const hasTerminated = (pod: BuildPod): boolean =>
  containers.every((container) => stateOf(pod, container)?.terminated !== undefined);

function stateOf({ status }: BuildPod, container: Container): ContainerState | undefined {
  return status?.containerStatuses?.find(({ name }) => name === container)?.state;
}

/** A container's result for a step of another container is ignored. */
function resultOf(container: Container, message: string | undefined): StepResult | undefined {
  const result = parseStepResult(message);
  return result && containerSteps[container].includes(result.step) ? result : undefined;
}

/** The client's steps run beside the runner of `build` and can forge its result: each field is taken from one step only. */
function mergeReport(report: StepReport, result: StepResult | undefined): void {
  if (result?.step === "fetch") {
    const { commitSha, commitMessage } = result;
    if (/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(commitSha ?? "")) {
      report.commitSha = commitSha;
    }
    if (commitMessage !== undefined) {
      report.commitMessage = commitMessage;
    }
  }
  if (result?.step === "push" && result.digest !== undefined) {
    report.digest = result.digest;
  }
}

interface Termination {
  exitCode?: number;
  reason?: string;
  result?: StepResult;
}

/** The failure that the step has classified, then that of the pod, then that of the container. */
function whyFailed(
  { status }: BuildPod,
  { exitCode, reason, result }: Termination,
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
  // An unknown code may come from a forged result.
  return Object.hasOwn(failures, code)
    ? { code: code as FailureCode, message }
    : failure("BUILD_FAILED_UNCLASSIFIED");
}
