/** The parts of Kubernetes' objects that the models write and read. All are frozen: changing a shared one throws. */

import type { ObjectMeta, OwnerReference } from "@slipway/controller-runtime";
import type { JobRun, Project } from "@slipway/crds";

/** `metadata` as the model's apiserver fills it. */
export interface StoredMeta extends ObjectMeta {
  name: string;
  uid: string;
  resourceVersion: string;
  generation: number;
  creationTimestamp: string;
}

/** Any object of the model's cluster. */
export interface Stored {
  apiVersion: string;
  kind: string;
  metadata: StoredMeta;
  spec?: unknown;
  status?: unknown;
}

export type StoredProject = Omit<Project, "metadata"> & { metadata: StoredMeta };
export type StoredJobRun = Omit<JobRun, "metadata"> & { metadata: StoredMeta };

export interface PodTemplate {
  metadata?: {
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
  };
  spec: {
    restartPolicy?: string;
    terminationGracePeriodSeconds?: number;
    containers: { name: string; image?: string }[];
  };
}

export interface JobSpec {
  suspend?: boolean;
  backoffLimit?: number;
  activeDeadlineSeconds?: number;
  podReplacementPolicy?: string;
  template: PodTemplate;
}

export interface StoredJob extends Stored {
  spec: JobSpec;
  status?: {
    active?: number;
    succeeded?: number;
    failed?: number;
    startTime?: string;
    completionTime?: string;
    conditions?: { type: string; status: string; reason?: string; lastTransitionTime?: string }[];
  };
}

export interface StoredCronJob extends Stored {
  spec: {
    schedule: string;
    timeZone?: string;
    suspend?: boolean;
    concurrencyPolicy?: string;
    startingDeadlineSeconds?: number;
    jobTemplate: {
      metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
      spec: JobSpec;
    };
  };
  status?: { active?: { name: string; uid: string }[]; lastScheduleTime?: string };
}

/** `containerStatuses[].state` of a pod. */
export interface ContainerState {
  waiting?: { reason: string; message?: string };
  running?: { startedAt: string };
  terminated?: { exitCode: number; reason: string; startedAt?: string | null; finishedAt?: string | null };
}

export interface PodStatus {
  phase: "Pending" | "Running" | "Succeeded" | "Failed";
  reason?: string;
  startTime?: string;
  conditions?: { type: string; status: string; reason?: string }[];
  containerStatuses?: {
    name: string;
    ready: boolean;
    started: boolean;
    restartCount: number;
    image: string;
    imageID: string;
    state: ContainerState;
  }[];
}

export interface StoredPod extends Stored {
  spec: PodTemplate["spec"] & { nodeName?: string };
  status: PodStatus;
}

export interface StoredNode extends Stored {
  status: { conditions: { type: string; status: string; reason: string; lastTransitionTime: string }[] };
}

/** The finalizer that the Job controller keeps on pods until it has counted them. */
export const TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking";

/** RFC 3339 in whole seconds, as `metav1.Time` is written. */
export function wholeSeconds(time: number): string {
  return `${new Date(Math.floor(time / 1_000) * 1_000).toISOString().slice(0, 19)}Z`;
}

/** A reference to a controlling owner. */
export function controllerOf(owner: Stored): OwnerReference {
  const { name, uid } = owner.metadata;
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** The uid of the controlling owner. */
export function ownerUid(object: Stored): string | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller === true)?.uid;
}
