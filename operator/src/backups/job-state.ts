/** The state of a backup's Job, from it and its pods. Pure. */

import type { KubernetesObject, ObjectMeta } from "@slipway/controller-runtime";
import { parseResult, type Result } from "./agent/protocol.ts";
import { AGENT_CONTAINER, ENGINE_CONTAINER } from "./job.ts";

/** The part of a Job that is read. */
export interface WorkJob extends KubernetesObject {
  metadata: ObjectMeta & { name: string };
  status?: { conditions?: { type: string; status: string; reason?: string }[] };
}

interface Terminated {
  exitCode: number;
  message?: string;
  finishedAt?: string;
}

/** The part of its pods that is read. */
export interface WorkPod extends KubernetesObject {
  metadata: ObjectMeta & { name: string };
  status?: {
    phase?: string;
    containerStatuses?: {
      name: string;
      state?: { terminated?: Terminated; waiting?: { reason?: string }; running?: object };
    }[];
  };
}

export type JobState =
  | { state: "running"; partiallyTerminated?: WorkPod }
  | { state: "succeeded"; result: Extract<Result, { ok: true }> }
  | {
      state: "failed";
      reason: "DumpFailed" | "LoadFailed" | "StoreFailed" | "DataDamaged" | "DeadlineExceeded";
      message: string;
    };

/** A container that still runs so long after the other one has failed will never end without being killed. */
const PARTIAL_TERMINATION_MS = 20_000;

const KILLED = "Its pods were killed, or taken away, before they could say how they ended.";

/** Its Job's name, set by the controller-manager. */
const JOB_NAME = "batch.kubernetes.io/job-name";

export const podsOf = (job: WorkJob, pods: readonly WorkPod[]): WorkPod[] =>
  pods.filter(({ metadata }) => metadata.labels?.[JOB_NAME] === job.metadata.name);

/**
 * A Job has succeeded when its agent reports it; it has failed when Kubernetes has stopped retrying it.
 * @param pods of the Job
 */
export function jobState(job: WorkJob, pods: readonly WorkPod[], now: Date): JobState {
  const results = pods
    .toSorted((a, b) => endOf(a) - endOf(b))
    .flatMap((pod) => parseResult(terminated(pod, AGENT_CONTAINER)?.message) ?? []);
  const conditions = job.status?.conditions ?? [];
  const conditionOf = (type: string) => conditions.find((one) => one.type === type && one.status === "True");
  const good = results.find((result) => result.ok);
  const failed = conditionOf("Failed");
  // Only all containers together have succeeded: the engine's may fail after its dump is stored.
  if (good && conditionOf("Complete")) {
    return { state: "succeeded", result: good };
  }
  if (failed) {
    if (failed.reason === "DeadlineExceeded") {
      return { state: "failed", reason: "DeadlineExceeded", message: "It took too long." };
    }
    const last = results.findLast((result) => !result.ok);
    return last
      ? { state: "failed", reason: last.reason, message: last.message }
      : { state: "failed", reason: "StoreFailed", message: KILLED };
  }
  if (conditionOf("Complete")) {
    return {
      state: "failed",
      reason: "StoreFailed",
      message: "The pod was deleted before its result was read.",
    };
  }
  const partiallyTerminated = pods.find((pod) => isPartiallyTerminated(pod, now));
  return { state: "running", ...(partiallyTerminated ? { partiallyTerminated } : {}) };
}

/** One container has failed, and the other one waits for it. */
function isPartiallyTerminated(pod: WorkPod, now: Date): boolean {
  const ends = [ENGINE_CONTAINER, AGENT_CONTAINER].map((name) => terminated(pod, name));
  const dead = ends.find((end) => end && end.exitCode !== 0);
  return (
    dead !== undefined &&
    ends.includes(undefined) &&
    now.getTime() - Date.parse(dead.finishedAt ?? "") > PARTIAL_TERMINATION_MS
  );
}

function terminated(pod: WorkPod, container: string): Terminated | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === container)?.state?.terminated;
}

const endOf = (pod: WorkPod): number => Date.parse(terminated(pod, AGENT_CONTAINER)?.finishedAt ?? "") || 0;
