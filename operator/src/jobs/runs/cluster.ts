/** The calls that the jobrun controller makes to the apiserver, and the part of each object that it reads. */

import {
  isInTerminalPhase,
  type KubeClient,
  type KubernetesObject,
  type ObjectMeta,
} from "@slipway/controller-runtime";

/** Calls that the controller makes. */
export type RunCluster = Pick<KubeClient, "getOrUndefined" | "listAll" | "create" | "patch" | "delete">;

/** When a CronJob's Job was due; set by the controller-manager. */
export const SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/** Name of the Job that a pod is of; set by the controller-manager. */
export const JOB_NAME = "batch.kubernetes.io/job-name";
/** The container that runs a project's image. */
export const APP_CONTAINER = "app";

interface Meta extends ObjectMeta {
  name: string;
  namespace: string;
}

/** The part of a `batch/v1` Job that is read. */
export interface Job extends KubernetesObject {
  metadata: Meta;
  spec?: { suspend?: boolean };
  status?: { conditions?: { type: string; status: string; reason?: string }[] };
}

/** The part of a `batch/v1` CronJob that is read. */
export interface CronJob extends KubernetesObject {
  metadata: Meta;
  spec: { jobTemplate: { metadata?: ObjectMeta; spec: Record<string, unknown> } };
}

/** State of a container, as kubelets report it: times are RFC 3339 in whole seconds, null or 1970 when there was none. */
export interface ContainerState {
  waiting?: { reason?: string };
  running?: { startedAt?: string | null };
  terminated?: {
    exitCode?: number;
    reason?: string;
    startedAt?: string | null;
    finishedAt?: string | null;
  };
}

/** The part of a Pod that is read. */
export interface RunPod extends KubernetesObject {
  metadata: Meta;
  spec?: { nodeName?: string };
  status?: {
    phase?: string;
    reason?: string;
    containerStatuses?: { name: string; state?: ContainerState }[];
  };
}

/** The part of a Node that is read. */
export interface RunNode extends KubernetesObject {
  metadata: KubernetesObject["metadata"] & { name: string };
  status?: { conditions?: readonly { type: string; status: string; lastTransitionTime?: string }[] };
}

/** A Job without its template, which is not read. */
export function slimJob(job: Job): Job {
  const { apiVersion, kind, metadata, spec, status } = job;
  return {
    apiVersion,
    kind,
    metadata: slimMeta(metadata),
    spec: { suspend: spec?.suspend === true },
    status: { conditions: status?.conditions },
  };
}

/** A Pod without the fields that are not read. */
export function slimRunPod(pod: RunPod): RunPod {
  const { apiVersion, kind, metadata, spec, status } = pod;
  const { phase, reason } = status ?? {};
  const app = status?.containerStatuses?.find(({ name }) => name === APP_CONTAINER);
  return {
    apiVersion,
    kind,
    metadata: slimMeta(metadata),
    spec: { nodeName: spec?.nodeName },
    status: {
      phase,
      reason,
      containerStatuses: app ? [{ name: app.name, state: app.state }] : [],
    },
  };
}

/** Whether a node is ready: only then is the state of its pods trusted. */
export function isReady(node: RunNode | undefined): boolean {
  return node?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

/** Since when a node is ready, by the cluster's clock; undefined when it is not, or does not report it. */
export function readySince(node: RunNode | undefined): Date | undefined {
  const ready = node?.status?.conditions?.find(({ type, status }) => type === "Ready" && status === "True");
  return ready?.lastTransitionTime === undefined ? undefined : new Date(ready.lastTransitionTime);
}

function slimMeta<M extends Meta>({ managedFields: _managedFields, ...metadata }: M): M {
  return metadata as M;
}

// State of the run's container, from its pod. Pure.

/** State of a container; unknown fields are absent. Times are the node's, in whole seconds. */
export type ContainerFacts =
  /** Not started yet, and it still may. */
  | { state: "pending" }
  | { state: "running"; startedAt: Date }
  /** It will never run again. Without `startedAt` it never ran, as far as the pod knows. */
  | { state: "ended"; startedAt?: Date; finishedAt?: Date; exitCode?: number; reason?: string };

/** Reads a pod. */
export function readContainer(pod: RunPod): ContainerFacts {
  const { reason } = pod.status ?? {};
  const over = isInTerminalPhase(pod);
  const app = pod.status?.containerStatuses?.find(({ name }) => name === APP_CONTAINER)?.state;
  if (app?.terminated) {
    const { exitCode, reason: why } = app.terminated;
    return {
      state: "ended",
      ...known("startedAt", moment(app.terminated.startedAt)),
      ...known("finishedAt", moment(app.terminated.finishedAt)),
      ...known("exitCode", exitCode),
      ...known("reason", why),
    };
  }
  const startedAt = moment(app?.running?.startedAt);
  if (over) {
    // Its node was deleted, or rejected it: no more is reported.
    return { state: "ended", ...known("startedAt", startedAt), ...known("reason", reason) };
  }
  if (startedAt) {
    return { state: "running", startedAt };
  }
  const deleted = pod.metadata.deletionTimestamp !== undefined;
  // No node has it, and a pod that is being deleted is not scheduled.
  if (deleted && !pod.spec?.nodeName) {
    return { state: "ended", ...known("reason", reason) };
  }
  return { state: "pending" };
}

/** A time that a kubelet wrote: where there was none it writes null, or the beginning of 1970. */
function moment(text: string | null | undefined): Date | undefined {
  const time = text ? Date.parse(text) : Number.NaN;
  return time > 0 ? new Date(time) : undefined;
}

function known<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [key in K]?: V });
}
