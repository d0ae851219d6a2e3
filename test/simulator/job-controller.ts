/**
 * Jobs of one pod as the controller-manager of Kubernetes 1.34 treats them (pkg/controller/job), with `backoffLimit` 0 and
 * `podReplacementPolicy: Failed`.
 */

import { type ObjectRef, parseKey, refKey, resources } from "@slipway/controller-runtime";
import type { Apiserver } from "./apiserver.ts";
import type { ControllerManager } from "./controller-manager.ts";
import { isFinished } from "./cron-job-controller.ts";
import {
  controllerOf,
  ownerUid,
  type StoredJob,
  type StoredPod,
  TRACKING_FINALIZER,
  wholeSeconds,
} from "./objects.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";
import { DelayQueue } from "./timeline.ts";

type JobStatus = NonNullable<StoredJob["status"]>;

/** Changes of pods are gathered for so long before their Job is reconciled. */
const BATCH_MS = 1_000;

export class JobController {
  readonly #api: Apiserver;
  readonly #timeline: Timeline;
  readonly #manager: ControllerManager;
  readonly #chance: Chance;
  readonly #queue: DelayQueue;
  /** Keys of pods by the uid of their Job. */
  readonly #pods = new Map<string, Set<string>>();

  constructor(timeline: Timeline, api: Apiserver, manager: ControllerManager, chance: Chance) {
    this.#timeline = timeline;
    this.#api = api;
    this.#manager = manager;
    this.#chance = chance;
    this.#queue = new DelayQueue(timeline, (key) => this.#sync(parseKey(key)));
    api.onChange(({ type, resource, object, old }) => {
      if (resource === resources.jobs) {
        // A change of the spec and a deletion both raise the generation.
        if (object.metadata.generation !== old?.metadata.generation) {
          this.#queue.add(refKey(object.metadata), manager.delay());
        }
      } else if (resource === resources.pods) {
        this.#notePod(type, object as StoredPod);
      }
    });
  }

  #notePod(type: "add" | "update" | "delete", pod: StoredPod): void {
    const uid = ownerUid(pod) ?? "";
    const keys = this.#pods.get(uid) ?? new Set();
    if (type === "delete") {
      keys.delete(refKey(pod.metadata));
    } else {
      keys.add(refKey(pod.metadata));
    }
    if (keys.size > 0) {
      this.#pods.set(uid, keys);
    } else {
      this.#pods.delete(uid);
    }
    const { namespace, ownerReferences } = pod.metadata;
    const name = ownerReferences?.[0]?.name;
    if (name !== undefined) {
      this.#queue.add(refKey({ namespace, name }), BATCH_MS + this.#manager.delay());
    }
  }

  #podsOf(uid: string): StoredPod[] {
    return [...(this.#pods.get(uid) ?? [])]
      .map((key) => this.#api.get<StoredPod>(resources.pods, parseKey(key)))
      .filter((pod) => pod !== undefined);
  }

  #sync(ref: ObjectRef): void {
    const late = this.#manager.downFor();
    if (late > 0) {
      this.#queue.add(refKey(ref), late);
      return;
    }
    const job = this.#api.get<StoredJob>(resources.jobs, ref);
    if (!job) {
      return;
    }
    const pods = this.#podsOf(job.metadata.uid);
    if (isFinished(job)) {
      for (const pod of pods) {
        this.#untrack(pod);
      }
      return;
    }
    const status: JobStatus = { ...job.status };
    const suspended = job.spec.suspend === true;
    const tracked = pods.filter((pod) => isTracked(pod));
    const succeeded =
      (status.succeeded ?? 0) + tracked.filter((pod) => pod.status.phase === "Succeeded").length;
    const failed = (status.failed ?? 0) + tracked.filter((pod) => pod.status.phase === "Failed").length;
    const active = pods.filter((pod) => !isTerminal(pod) && pod.metadata.deletionTimestamp === undefined);
    const ending = pods.filter((pod) => !isTerminal(pod) && pod.metadata.deletionTimestamp !== undefined);
    if (status.startTime === undefined && !suspended) {
      status.startTime = wholeSeconds(this.#timeline.now);
    }
    const reason = this.#failure(job, status, failed);
    let running = active.length;
    if (reason !== undefined) {
      for (const pod of active) {
        this.#delete(pod);
      }
      if (active.length + ending.length === 0) {
        setCondition(status, "Failed", reason, this.#timeline.now);
      }
    } else if (job.metadata.deletionTimestamp === undefined) {
      if (suspended) {
        for (const pod of active) {
          this.#delete(pod);
        }
      } else if (succeeded === 0 && active.length + ending.length === 0) {
        this.#createPod(job);
        running = 1;
      }
    }
    // A Job that is being deleted makes no pods any more; it is completed all the same.
    if (reason === undefined && succeeded > 0 && active.length === 0) {
      setCondition(status, "Complete", "CompletionsReached", this.#timeline.now);
      status.completionTime = wholeSeconds(this.#timeline.now);
    }
    Object.assign(status, { active: running, succeeded, failed });
    this.#api.patch(resources.jobs, ref, { status }, { subresource: "status" });
    const counted = job.metadata.deletionTimestamp !== undefined;
    for (const pod of tracked) {
      if (counted || isTerminal(pod)) {
        this.#untrack(pod);
      }
    }
  }

  /** Why the Job has failed, or adds it to the queue for when it would. */
  #failure(job: StoredJob, status: JobStatus, failed: number): string | undefined {
    if (failed > (job.spec.backoffLimit ?? 6)) {
      return "BackoffLimitExceeded";
    }
    const { activeDeadlineSeconds } = job.spec;
    if (activeDeadlineSeconds === undefined || status.startTime === undefined) {
      return undefined;
    }
    const left = Date.parse(status.startTime) + activeDeadlineSeconds * 1_000 - this.#timeline.now;
    if (left <= 0) {
      return "DeadlineExceeded";
    }
    if (job.spec.suspend !== true) {
      this.#queue.add(refKey(job.metadata), left);
    }
    return undefined;
  }

  #createPod(job: StoredJob): void {
    const { template } = job.spec;
    const { name, namespace, uid } = job.metadata;
    this.#api.create(resources.pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name: `${name}-${this.#chance.text(5)}`,
        namespace,
        labels: {
          ...template.metadata?.labels,
          "batch.kubernetes.io/job-name": name,
          "batch.kubernetes.io/controller-uid": uid,
        },
        annotations: { ...template.metadata?.annotations },
        finalizers: [...(template.metadata?.finalizers ?? []), TRACKING_FINALIZER],
        ownerReferences: [controllerOf(job)],
      },
      spec: template.spec,
    });
  }

  #delete(pod: StoredPod): void {
    this.#api.delete(resources.pods, pod.metadata, { uid: pod.metadata.uid });
  }

  #untrack(pod: StoredPod): void {
    if (!this.#api.get(resources.pods, pod.metadata) || !isTracked(pod)) {
      return;
    }
    const finalizers = (pod.metadata.finalizers ?? []).filter((item) => item !== TRACKING_FINALIZER);
    this.#api.patch(resources.pods, pod.metadata, { metadata: { finalizers } });
  }
}

function isTracked(pod: StoredPod): boolean {
  return pod.metadata.finalizers?.includes(TRACKING_FINALIZER) === true;
}

/** Whether a pod has ended for good. */
export function isTerminal(pod: StoredPod): boolean {
  return pod.status.phase === "Succeeded" || pod.status.phase === "Failed";
}

function setCondition(status: JobStatus, type: string, reason: string, now: number): void {
  const condition = { type, status: "True", reason, lastTransitionTime: wholeSeconds(now) };
  status.conditions = [...(status.conditions ?? []).filter((item) => item.type !== type), condition];
}
