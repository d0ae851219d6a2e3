/**
 * CronJobs as the controller-manager of Kubernetes 1.34 treats them (pkg/controller/cronjob): Jobs named after the minute,
 * the most recent missed occurrence within `startingDeadlineSeconds`, `Forbid`. It comes late by random amounts.
 */

import { type ObjectRef, parseKey, refKey, resources } from "@slipway/controller-runtime";
import type { Apiserver } from "./apiserver.ts";
import type { ControllerManager } from "./controller-manager.ts";
import { ModelSchedule } from "./cron.ts";
import { controllerOf, ownerUid, type StoredCronJob, type StoredJob, wholeSeconds } from "./objects.ts";
import type { Timeline } from "./timeline.ts";
import { DelayQueue } from "./timeline.ts";

/** What the controller adds to the time of the next occurrence, against clocks that are off. */
const NEXT_SCHEDULE_DELTA_MS = 100;
const SCHEDULED_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp";

export class CronJobController {
  readonly #api: Apiserver;
  readonly #timeline: Timeline;
  readonly #manager: ControllerManager;
  readonly #queue: DelayQueue;
  readonly #schedules = new Map<string, ModelSchedule>();
  /** CronJobs by uid, for events of their Jobs. */
  readonly #keys = new Map<string, string>();

  constructor(timeline: Timeline, api: Apiserver, manager: ControllerManager) {
    this.#timeline = timeline;
    this.#api = api;
    this.#manager = manager;
    this.#queue = new DelayQueue(timeline, (key) => this.#sync(parseKey(key)));
    api.onChange(({ type, resource, object, old }) => {
      if (resource === resources.cronJobs) {
        const key = refKey(object.metadata);
        this.#keys.set(object.metadata.uid, key);
        if (type === "delete") {
          this.#keys.delete(object.metadata.uid);
        } else if (object.spec !== old?.spec) {
          this.#queue.add(key, manager.delay());
        }
      } else if (resource === resources.jobs) {
        const key = this.#keys.get(ownerUid(object) ?? "");
        if (key !== undefined) {
          this.#queue.add(key, manager.delay());
        }
      }
    });
  }

  #sync(ref: ObjectRef): void {
    const key = refKey(ref);
    const late = this.#manager.downFor();
    if (late > 0) {
      this.#queue.add(key, late);
      return;
    }
    const cronJob = this.#api.get<StoredCronJob>(resources.cronJobs, ref);
    if (!cronJob) {
      return;
    }
    const status = this.#observed(cronJob);
    let changed = status !== cronJob.status;
    if (cronJob.metadata.deletionTimestamp === undefined && cronJob.spec.suspend !== true) {
      const created = this.#start(cronJob, status);
      // It may crash between the two writes: the Job exists, and its own status does not show it.
      if (created && this.#manager.crashes()) {
        this.#queue.add(key, this.#manager.restartMs());
        return;
      }
      if (created) {
        status.active = [...(status.active ?? []), created.active];
        status.lastScheduleTime = created.lastScheduleTime;
        changed = true;
      }
      const from = status.lastScheduleTime ?? cronJob.metadata.creationTimestamp;
      const latest = Math.max(Date.parse(from), this.#timeline.now);
      const next = this.#scheduleOf(cronJob).next(latest) + NEXT_SCHEDULE_DELTA_MS;
      this.#queue.add(key, next - this.#timeline.now + this.#manager.delay());
    }
    if (changed) {
      this.#api.patch(resources.cronJobs, ref, { status }, { subresource: "status" });
    }
  }

  /** The status without Jobs that have finished or are deleted; the CronJob's own when nothing of it changed. */
  #observed(cronJob: StoredCronJob): NonNullable<StoredCronJob["status"]> {
    const { namespace } = cronJob.metadata;
    const status = cronJob.status ?? {};
    const active = (status.active ?? []).filter(({ name, uid }) => {
      const job = this.#api.get<StoredJob>(resources.jobs, { namespace, name });
      return job?.metadata.uid === uid && !isFinished(job);
    });
    return active.length === (status.active ?? []).length ? { ...status } : { ...status, active };
  }

  #start(
    cronJob: StoredCronJob,
    status: NonNullable<StoredCronJob["status"]>,
  ): { active: { name: string; uid: string }; lastScheduleTime: string } | undefined {
    const scheduled = this.#unmet(cronJob, status);
    if (scheduled === undefined) {
      return undefined;
    }
    const { namespace } = cronJob.metadata;
    const name = `${cronJob.metadata.name}-${Math.floor(scheduled / 60_000)}`;
    const lastScheduleTime = wholeSeconds(scheduled);
    if (status.active?.some((job) => job.name === name) || status.lastScheduleTime === lastScheduleTime) {
      return undefined;
    }
    if (cronJob.spec.concurrencyPolicy === "Forbid" && (status.active ?? []).length > 0) {
      return undefined;
    }
    const present = this.#api.get<StoredJob>(resources.jobs, { namespace, name });
    if (present) {
      if (ownerUid(present) !== cronJob.metadata.uid) {
        return undefined;
      }
      return { active: { name, uid: present.metadata.uid }, lastScheduleTime };
    }
    const { jobTemplate } = cronJob.spec;
    const job = this.#api.create<StoredJob>(resources.jobs, {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: {
        name,
        namespace,
        labels: { ...jobTemplate.metadata?.labels },
        annotations: { ...jobTemplate.metadata?.annotations, [SCHEDULED_ANNOTATION]: lastScheduleTime },
        ownerReferences: [controllerOf(cronJob)],
      },
      spec: jobTemplate.spec,
    });
    return { active: { name, uid: job.metadata.uid }, lastScheduleTime };
  }

  /** The most recent occurrence that no Job was made for and that may still have one. */
  #unmet(cronJob: StoredCronJob, status: NonNullable<StoredCronJob["status"]>): number | undefined {
    const { now } = this.#timeline;
    const { startingDeadlineSeconds } = cronJob.spec;
    let earliest = Date.parse(status.lastScheduleTime ?? cronJob.metadata.creationTimestamp);
    if (startingDeadlineSeconds !== undefined) {
      earliest = Math.max(earliest, now - startingDeadlineSeconds * 1_000);
    }
    const latest = this.#scheduleOf(cronJob).previous(now);
    return latest > earliest ? latest : undefined;
  }

  #scheduleOf(cronJob: StoredCronJob): ModelSchedule {
    const text = cronJob.spec.schedule;
    const known = this.#schedules.get(text) ?? new ModelSchedule(text);
    this.#schedules.set(text, known);
    return known;
  }
}

/** Whether a Job has a terminal condition. */
export function isFinished(job: StoredJob): boolean {
  return (job.status?.conditions ?? []).some(
    ({ type, status }) => (type === "Complete" || type === "Failed") && status === "True",
  );
}
