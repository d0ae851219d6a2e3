/** Reads a rollout from a Deployment and its pods. Pure: the same objects always have the same result. */

import { annotations } from "@slipway/crds";
import { appStatus, type PodView, podProblem, type RolloutProblem } from "./pod-problem.ts";

/** The parts of a Deployment that are read here. */
export interface DeploymentView {
  metadata: { generation?: number };
  spec?: {
    replicas?: number;
    template?: { metadata?: { annotations?: Readonly<Record<string, string>> } };
  };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    updatedReplicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    conditions?: readonly {
      type: string;
      status: string;
      reason?: string;
      message?: string;
      lastUpdateTime?: string;
    }[];
  };
}

/** The version that is being rolled out. */
export interface Version {
  /** The value of the annotation by which pods and the Deployment's template identify their settings. */
  settingsHash: string;
  /** Reference of the image. */
  image: string;
}

/** A rollout at one moment. */
export interface Rollout {
  /** The Deployment controller has observed the current spec: the numbers below belong to it. */
  observed: boolean;
  /** Every instance runs the current spec and serves, and no older one is left. */
  complete: boolean;
  /**
   * When Kubernetes noticed that nothing had progressed for the Deployment's deadline; it keeps trying. It does not take
   * that back when another version is wanted, only at the next progress.
   */
  stuckSince?: string;
  /** Desired instances. */
  wanted: number;
  /** Instances, of any version, that serve now. */
  serving: number;
  /** Instances, of any version, that still exist. */
  existing: number;
  /** An instance of the current spec waits for its image. */
  pulling: boolean;
  /** An instance of the current spec runs, and does not answer yet. */
  silent: boolean;
  /** What keeps the current spec's instances from serving; those of an older one do not count. */
  problem?: RolloutProblem;
  /** Every instance that should run the current spec has been seen with the image that it runs. */
  identified: boolean;
  /** Digest by which the current spec's image can be pulled, such as `sha256:…`. */
  imageDigest?: string;
}

/** Reads a rollout. Without a Deployment, or with one of another version, nothing is observed. */
export function readRollout(
  deployment: DeploymentView | undefined,
  pods: readonly PodView[],
  version: Version,
): Rollout {
  const status = deployment?.status;
  const wanted = deployment?.spec?.replicas ?? (deployment ? 1 : 0);
  const template = deployment?.spec?.template?.metadata?.annotations;
  const generation = deployment?.metadata.generation ?? 1;
  // One that was created without instances never had any: there is nothing that its controller could observe.
  const isEmpty = wanted === 0 && generation === 1;
  const observed =
    deployment !== undefined &&
    template?.[annotations.settingsHash] === version.settingsHash &&
    (isEmpty || (status?.observedGeneration ?? 0) >= generation);
  const updated = status?.updatedReplicas ?? 0;
  const existing = Math.max(status?.replicas ?? 0, 0);
  const available = status?.availableReplicas ?? 0;
  const progressing = status?.conditions?.find(({ type }) => type === "Progressing");
  // The watches of pods and Deployments are independent: the version of a pod is read from the pod.
  const live = pods
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .filter(({ metadata }) => metadata.annotations?.[annotations.settingsHash] === version.settingsHash)
    .toSorted(newestFirst);
  const complete = observed && updated >= wanted && existing <= updated && available >= updated;
  return {
    observed,
    complete,
    stuckSince:
      observed && !complete && progressing?.reason === "ProgressDeadlineExceeded"
        ? progressing.lastUpdateTime
        : undefined,
    wanted,
    serving: status?.readyReplicas ?? 0,
    existing,
    pulling: !complete && live.some(isPulling),
    problem: complete ? undefined : (replicaFailure(deployment) ?? firstProblem(live)),
    silent: !complete && live.some(isSilent),
    identified: live.length >= wanted && live.every((pod) => appStatus(pod)?.imageID),
    imageDigest: live.map((pod) => digestOf(pod, version.image)).find((digest) => digest !== undefined),
  };
}

function newestFirst(a: PodView, b: PodView): number {
  return (
    (b.metadata.creationTimestamp ?? "").localeCompare(a.metadata.creationTimestamp ?? "") ||
    (a.metadata.name ?? "").localeCompare(b.metadata.name ?? "")
  );
}

/** A pod's status has no state for "pulling": a container that is being created and has no image yet waits for it. */
function isPulling(pod: PodView): boolean {
  const container = appStatus(pod);
  return (
    pod.pullBegun === true &&
    container?.state?.waiting?.reason === "ContainerCreating" &&
    container.lastState?.terminated === undefined &&
    !container.imageID
  );
}

function isSilent(pod: PodView): boolean {
  const container = appStatus(pod);
  return container?.state?.running !== undefined && container.ready !== true;
}

/**
 * The manifest's digest. An image without `repository@` is named by its own id, which no registry knows; and a node that
 * has the same image from another repository may name that one, where the manifest need not be the same.
 */
function digestOf(pod: PodView, image: string): string | undefined {
  const [, repository = "", digest] =
    /^(.*)@(sha256:[0-9a-f]{64})$/.exec(appStatus(pod)?.imageID ?? "") ?? [];
  return repositoryOf(repository) === repositoryOf(image) ? digest : undefined;
}

/** Without scheme, tag and digest, and with Docker Hub's host and folder written out. */
function repositoryOf(reference: string): string {
  const path = reference
    .replace(/^.*:\/\//, "")
    .replace(/@.*$/, "")
    .replace(/:[^:/]*$/, "");
  const [host = "", ...rest] = path.split("/");
  if (rest.length === 0) {
    return `docker.io/library/${path}`;
  }
  const isHost = host.includes(".") || host.includes(":") || host === "localhost";
  const full = isHost ? path.replace(/^index\.docker\.io\//, "docker.io/") : `docker.io/${path}`;
  return full.replace(/^docker\.io\/([^/]+)$/, "docker.io/library/$1");
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
  return pods.map((pod) => podProblem(pod)).find((problem) => problem !== undefined);
}

/** Why a rollout that has missed its deadline did not complete, in words for the owner of the project. */
export function explainMiss(
  { problem, pulling, silent }: Rollout,
  { port, healthcheckPath }: { port?: number; healthcheckPath?: string },
): string {
  if (problem) {
    return problem.message;
  }
  if (pulling) {
    return "The image was not pulled in time.";
  }
  if (silent && port === undefined) {
    return "The worker runs, but its readiness command does not succeed.";
  }
  if (silent) {
    return healthcheckPath === undefined
      ? `The application runs, but nothing answers on port ${port}.`
      : `The application runs, but its health check ${healthcheckPath} on port ${port} does not succeed.`;
  }
  return "The instances did not start to serve in time.";
}
