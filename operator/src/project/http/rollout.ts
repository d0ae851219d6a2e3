/** What a Deployment and its pods say about a rollout. Pure: the same objects always give the same answer. */

import type { ProjectReason } from "@slipway/crds";

/** The parts of a Deployment that are read here. */
export interface DeploymentView {
  metadata: { generation?: number };
  spec?: { replicas?: number };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    updatedReplicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    conditions?: readonly { type: string; status: string; reason?: string; message?: string }[];
  };
}

interface ContainerStatusView {
  name: string;
  ready?: boolean;
  started?: boolean;
  imageID?: string;
  state?: {
    waiting?: { reason?: string; message?: string };
    terminated?: { reason?: string; exitCode?: number };
    running?: { startedAt?: string };
  };
  lastState?: { terminated?: { reason?: string; exitCode?: number } };
}

/** The parts of a pod that are read here. */
export interface PodView {
  metadata: { name?: string; creationTimestamp?: string; deletionTimestamp?: string };
  spec?: { containers?: readonly { name: string; image?: string }[] };
  status?: {
    phase?: string;
    reason?: string;
    message?: string;
    conditions?: readonly {
      type: string;
      status: string;
      reason?: string;
      message?: string;
      lastTransitionTime?: string;
    }[];
    containerStatuses?: readonly ContainerStatusView[];
  };
}

/** Why instances do not come up, in words for whoever owns the project. */
export interface RolloutProblem {
  /** CamelCase, for a condition's reason. */
  reason: ProjectReason;
  message: string;
}

/** A rollout at one moment. */
export interface Rollout {
  /** The Deployment controller has looked at the current spec: the numbers below belong to it. */
  observed: boolean;
  /** Every instance runs the current spec and serves, and no older one is left. */
  complete: boolean;
  /** It made no progress for the Deployment's deadline; Kubernetes keeps trying. */
  deadlineExceeded: boolean;
  /** Instances asked for. */
  wanted: number;
  /** Instances, of any version, that serve now. */
  serving: number;
  /** Instances, of any version, that still exist. */
  existing: number;
  /** The current spec was rolled out before, and only the number of instances changes. */
  scaling: boolean;
  /** An instance waits for its image. */
  pulling: boolean;
  problem?: RolloutProblem;
  /** Digest of the image that runs, such as `sha256:…`. */
  imageDigest?: string;
}

/** Reads a rollout. Without a Deployment nothing is observed. */
export function readRollout(deployment: DeploymentView | undefined, pods: readonly PodView[]): Rollout {
  const status = deployment?.status;
  const wanted = deployment?.spec?.replicas ?? (deployment ? 1 : 0);
  const observed =
    deployment !== undefined && (status?.observedGeneration ?? 0) >= (deployment.metadata.generation ?? 1);
  const updated = status?.updatedReplicas ?? 0;
  const existing = Math.max(status?.replicas ?? 0, 0);
  const available = status?.availableReplicas ?? 0;
  const progressing = status?.conditions?.find(({ type }) => type === "Progressing");
  const live = pods.filter((pod) => !pod.metadata.deletionTimestamp).toSorted(newestFirst);
  const complete = observed && updated >= wanted && existing <= updated && available >= updated;
  return {
    observed,
    complete,
    deadlineExceeded: observed && !complete && progressing?.reason === "ProgressDeadlineExceeded",
    wanted,
    serving: status?.readyReplicas ?? 0,
    existing,
    scaling: !complete && progressing?.reason === "NewReplicaSetAvailable",
    pulling: !complete && live.some(isPulling),
    problem: complete ? undefined : (replicaFailure(deployment) ?? firstProblem(live)),
    imageDigest: live.map(digestOf).find((digest) => digest !== undefined),
  };
}

function newestFirst(a: PodView, b: PodView): number {
  return (
    (b.metadata.creationTimestamp ?? "").localeCompare(a.metadata.creationTimestamp ?? "") ||
    (a.metadata.name ?? "").localeCompare(b.metadata.name ?? "")
  );
}

function appStatus(pod: PodView): ContainerStatusView | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === "app");
}

/**
 * The kubelet has no state for "pulling". Its sandbox stands (PodReadyToStartContainers) and its container has never been
 * made: then it pulls, or is about to start.
 */
function isPulling(pod: PodView): boolean {
  const container = appStatus(pod);
  const sandbox = pod.status?.conditions?.find(({ type }) => type === "PodReadyToStartContainers");
  return (
    sandbox?.status === "True" &&
    container?.state?.waiting?.reason === "ContainerCreating" &&
    container.lastState?.terminated === undefined &&
    !container.imageID
  );
}

function digestOf(pod: PodView): string | undefined {
  return /sha256:[0-9a-f]{64}$/.exec(appStatus(pod)?.imageID ?? "")?.[0];
}

/** Pods that cannot even be created: a quota that is used up, a refusal by Pod Security. */
function replicaFailure(deployment: DeploymentView | undefined): RolloutProblem | undefined {
  const failure = deployment?.status?.conditions?.find(
    ({ type, status }) => type === "ReplicaFailure" && status === "True",
  );
  if (!failure) {
    return undefined;
  }
  const quota = failure.message?.includes("exceeded quota") === true;
  return {
    reason: quota ? "QuotaExceeded" : "InstanceRefused",
    message: quota
      ? "The organization's quota has no room for another instance."
      : "The cluster refuses to create an instance.",
  };
}

function firstProblem(pods: readonly PodView[]): RolloutProblem | undefined {
  return pods.map(podProblem).find((problem) => problem !== undefined);
}

// Names of pods, nodes or addresses stay out of these texts: a condition that changes with every retry never settles.
const WAITING: Readonly<Record<string, RolloutProblem>> = {
  CrashLoopBackOff: {
    reason: "ContainerCrashing",
    message: "The application exits again and again; its logs say why.",
  },
  ErrImagePull: { reason: "ImagePullFailed", message: "The image cannot be pulled." },
  ImagePullBackOff: { reason: "ImagePullFailed", message: "The image cannot be pulled." },
  InvalidImageName: {
    reason: "ImagePullFailed",
    message: "The image's name is not valid.",
  },
  ErrImageNeverPull: { reason: "ImagePullFailed", message: "The image cannot be pulled." },
  CreateContainerConfigError: {
    reason: "ContainerInvalid",
    message:
      "The container cannot be configured: a Secret it names is missing or the image runs as a forbidden user.",
  },
  CreateContainerError: {
    reason: "ContainerInvalid",
    message: "The container cannot be created.",
  },
  RunContainerError: {
    reason: "ContainerInvalid",
    message: "The container cannot be started: its command may not exist in the image.",
  },
};

const OUT_OF_MEMORY: RolloutProblem = {
  reason: "OutOfMemory",
  message: "The application uses more memory than its plan has.",
};

const NOT_ANSWERING: RolloutProblem = {
  reason: "ProbeFailing",
  message: "An instance that was up no longer answers.",
};

/** An instance that starts is not ready since before its container began; one that was up lost it later. */
function lostReadiness(pod: PodView, container: ContainerStatusView | undefined): boolean {
  const ready = pod.status?.conditions?.find(({ type }) => type === "Ready");
  const started = container?.state?.running?.startedAt;
  return (
    ready?.status === "False" &&
    started !== undefined &&
    Date.parse(ready.lastTransitionTime ?? "") > Date.parse(started)
  );
}

function podProblem(pod: PodView): RolloutProblem | undefined {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status === "False" && scheduled.reason === "Unschedulable") {
    return { reason: "Unschedulable", message: "No node has room for another instance." };
  }
  const container = appStatus(pod);
  const waiting = container?.state?.waiting?.reason;
  if (waiting !== undefined && WAITING[waiting]) {
    return container?.lastState?.terminated?.reason === "OOMKilled" ? OUT_OF_MEMORY : WAITING[waiting];
  }
  // Between two crashes the container runs for a moment: the crash before tells, or the answer would flap with each.
  const crash =
    container?.state?.terminated ?? (container?.ready ? undefined : container?.lastState?.terminated);
  if (!crash) {
    return lostReadiness(pod, container) ? NOT_ANSWERING : undefined;
  }
  return crash.reason === "OOMKilled" ? OUT_OF_MEMORY : WAITING.CrashLoopBackOff;
}
