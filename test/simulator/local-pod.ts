/** A pod as its kubelet has it, and the status that it reports of it. */

import { refKey } from "@slipway/controller-runtime";
import type { Behaviour, ContainerRecord } from "./container.ts";
import type { ModelNode } from "./nodes.ts";
import type { ContainerState, PodStatus, StoredPod } from "./objects.ts";
import type { Planned } from "./timeline.ts";

export interface LocalPod {
  readonly key: string;
  readonly uid: string;
  readonly project: string;
  readonly run: string;
  readonly behaviour: Behaviour;
  node: ModelNode | undefined;
  record: ContainerRecord | undefined;
  /** Nothing of it runs, or ever will. */
  over: boolean;
  /** What is reported of its container, where it never started or was lost. */
  terminated: ContainerState["terminated"] | "none" | undefined;
  /** Reason of the pod's status: Evicted. */
  reason: string | undefined;
  stopping: boolean;
  /** Deleted in the apiserver, as far as the kubelet has observed. */
  deleted: boolean;
  next: Planned | undefined;
  kill: Planned | undefined;
  publishing: boolean;
}

/** What is reported of a container whose end the runtime does not have. */
export const STATUS_UNKNOWN = { exitCode: 137, reason: "ContainerStatusUnknown" };

/** A pod that has no node yet. */
export function newLocalPod(pod: StoredPod, behaviour: Behaviour): LocalPod {
  return {
    key: refKey(pod.metadata),
    uid: pod.metadata.uid,
    project: pod.metadata.labels?.["slipway.dev/project"] ?? "",
    run: pod.metadata.ownerReferences?.[0]?.name ?? "",
    behaviour,
    node: undefined,
    record: undefined,
    over: false,
    terminated: undefined,
    reason: undefined,
    stopping: false,
    deleted: false,
    next: undefined,
    kill: undefined,
    publishing: false,
  };
}

/** The pod status that a kubelet reports. */
export function podStatus({ record, over, terminated, reason, behaviour }: LocalPod): PodStatus {
  const named = { name: "app", restartCount: 0, image: "app", imageID: "" };
  const containers = (state: ContainerState, running = false) => [
    { ...named, ready: running, started: running, state },
  ];
  const why = reason === undefined ? {} : { reason };
  if (!over && !record) {
    const waiting = Number.isFinite(behaviour.pullMs) ? "ContainerCreating" : "ImagePullBackOff";
    return { phase: "Pending", containerStatuses: containers({ waiting: { reason: waiting } }) };
  }
  if (!over && record) {
    const running = { startedAt: record.reportedStartedAt };
    return { phase: "Running", containerStatuses: containers({ running }, true) };
  }
  if (terminated === "none") {
    return { phase: "Failed", ...why };
  }
  if (terminated !== undefined || !record || record.reportedFinishedAt === undefined) {
    return {
      phase: "Failed",
      ...why,
      containerStatuses: containers({ terminated: terminated as typeof STATUS_UNKNOWN }),
    };
  }
  const ended = {
    exitCode: record.exitCode ?? 255,
    reason: record.reason ?? "Error",
    startedAt: record.reportedStartedAt,
    finishedAt: record.reportedFinishedAt,
  };
  const phase = ended.exitCode === 0 && reason === undefined ? "Succeeded" : "Failed";
  return { phase, ...why, containerStatuses: containers({ terminated: ended }) };
}
