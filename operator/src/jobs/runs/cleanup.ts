/** Deletes runs, Jobs and pods that are not needed any more. */

import { controllerOf, hasFinalizer, refKey, refOf } from "@slipway/controller-runtime";
import { finalizers, isOneOff, type JobRun, type Project } from "@slipway/crds";
import { jobRunResource } from "../../resources.ts";
import type { Job, RunPod } from "./cluster.ts";
import type { JobRunDependencies, RunContext } from "./context.ts";
import { isScheduled, jobStateOf } from "./job-state.ts";
import { identifyRun, newRun, scheduledAtOf } from "./manifests.ts";
import type { RunObjects } from "./objects.ts";
import { isPendingOccurrence } from "./occurrences.ts";
import { dateOf, isJobAdmitted, isNeverStarted, isOver, isRefused } from "./run.ts";
import { KEEP_CHARGED_MS, KEEP_ONE_OFF_MS, KEEP_ONE_OFF_RUNS, KEEP_REFUSED_MS } from "./settings.ts";
import type { SlotWriter } from "./slot.ts";
import { BY_PROJECT, projectOfRun } from "./stores.ts";

export class Cleanup {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;
  readonly #slot: SlotWriter;

  constructor(deps: JobRunDependencies, objects: RunObjects, slot: SlotWriter) {
    this.#deps = deps;
    this.#objects = objects;
    this.#slot = slot;
  }

  /** A run without the slot that is charged, rejected or never started: its Job is deleted immediately, the run after a retention time. */
  async cleanUpRun(
    run: JobRun,
    project: Project | undefined,
    { signal, requeue }: RunContext,
  ): Promise<void> {
    const { chargeRecorder, logArchiver, samples, clock } = this.#deps;
    const { uid = "" } = run.metadata;
    chargeRecorder.forget(uid);
    logArchiver.forget(uid);
    samples.forget(uid);
    const ref = refOf(run);
    const job = this.#objects.jobs.store.get(ref.namespace, ref.name);
    const pods = this.#objects.podsOf(ref);
    await this.#deleteJobAndReleasePods(job, pods, signal);
    const expiresAt = this.#expiresAt(run, project);
    const now = clock.now();
    if (expiresAt > now) {
      requeue.at(expiresAt, now);
    } else if (job === undefined && pods.every((pod) => !hasFinalizer(pod, finalizers.jobRun))) {
      await this.removeRun(run, signal);
    } else {
      requeue.after(1_000);
    }
  }

  /** Removes the finalizer of a run and deletes it. */
  async removeRun(run: JobRun, signal: AbortSignal): Promise<void> {
    const left = await this.#objects.release(this.#objects.runs, run, signal);
    if (left) {
      await this.#objects.remove(this.#objects.runs, left, signal);
    }
  }

  /** Deletes Jobs that can never be admitted; a JobRun that is missing for an admitted Job is created again. */
  async deleteOrphanedJobs(
    jobs: readonly Job[],
    hasRun: (name: string) => boolean,
    project: Project | undefined,
    context: RunContext,
  ): Promise<void> {
    const { signal, requeue } = context;
    for (const job of jobs) {
      const { name } = job.metadata;
      if (project && jobStateOf(project).activeRun === name) {
        continue;
      }
      if (isJobAdmitted(job)) {
        if (!hasRun(name)) {
          await this.#restoreRun(job, project, context);
        }
      } else if (!this.#mayStillRun(job, project)) {
        if (await this.#mayStart(job, signal)) {
          continue;
        }
        await this.#objects.remove(this.#objects.jobs, job, signal, { unchanged: true });
      } else {
        requeue.after(60_000);
      }
    }
  }

  /** Removes our finalizer from pods whose run and Job do not exist any more. */
  async releaseOrphanedPods(
    pods: readonly RunPod[],
    has: { run: (name: string) => boolean; job: (name: string) => boolean },
    nameOfJob: (pod: RunPod) => string | undefined,
    { signal }: RunContext,
  ): Promise<void> {
    for (const pod of pods) {
      const name = nameOfJob(pod);
      if (name === undefined || has.run(name) || has.job(name)) {
        continue;
      }
      if (!hasFinalizer(pod, finalizers.jobRun)) {
        continue;
      }
      const ref = { namespace: pod.metadata.namespace, name };
      if (await this.#objects.live(this.#objects.jobs, ref, signal)) {
        continue;
      }
      if (await this.#objects.live(this.#objects.runs, ref, signal)) {
        continue;
      }
      await this.#objects.release(this.#objects.pods, pod, signal);
    }
  }

  /** Whether it is the Job of a one-off run whose admission is not complete. One that is not in the cache may be recorded by now: it is read live. */
  async #mayStart(job: Job, signal: AbortSignal): Promise<boolean> {
    const { namespace, name } = job.metadata;
    if (isIncomplete(this.#deps.stores.runs.get(namespace, name), job)) {
      return true;
    }
    const isOfRun = controllerOf(job)?.kind === jobRunResource.kind;
    return isOfRun && isIncomplete(await this.#objects.live(this.#objects.runs, refOf(job), signal), job);
  }

  #mayStillRun(job: Job, project: Project | undefined): boolean {
    const scheduledAt = project && scheduledAtOf(job, project.metadata.name);
    return (
      project !== undefined &&
      scheduledAt !== undefined &&
      isScheduled(project) &&
      isPendingOccurrence(scheduledAt, project)
    );
  }

  /** An admitted run is charged even when its JobRun was deleted: that is created again. */
  async #restoreRun(job: Job, project: Project | undefined, { signal, requeue }: RunContext): Promise<void> {
    const { name, namespace } = job.metadata;
    if (await this.#objects.live(this.#objects.runs, { namespace, name }, signal)) {
      return;
    }
    const live = await this.#objects.live(this.#objects.jobs, { namespace, name }, signal);
    if (!live || live.metadata.uid !== job.metadata.uid || !hasFinalizer(live, finalizers.jobRun)) {
      return;
    }
    const now = project && (await this.#slot.live(project, signal));
    if (now) {
      const { trigger, scheduledAt } = identifyRun(name, now.metadata.name, live);
      await this.#objects.create(this.#objects.runs, newRun(now, name, trigger, scheduledAt), signal);
      requeue.after(1);
      return;
    }
    await this.#deleteJobAndReleasePods(live, this.#objects.podsOf({ namespace, name }), signal);
  }

  async #deleteJobAndReleasePods(
    job: Job | undefined,
    pods: readonly RunPod[],
    signal: AbortSignal,
  ): Promise<void> {
    for (const pod of pods) {
      await this.#objects.release(this.#objects.pods, pod, signal);
    }
    if (!job) {
      return;
    }
    // The garbage collector deletes its pods.
    const left = await this.#objects.release(this.#objects.jobs, job, signal);
    if (left) {
      await this.#objects.remove(this.#objects.jobs, left, signal);
    }
  }

  /** A run that never started, or whose project is being deleted, is not retained. */
  #expiresAt(run: JobRun, project: Project | undefined): Date {
    const { metadata, status } = run;
    const now = this.#deps.clock.now();
    if (metadata.deletionTimestamp || !project || project.metadata.deletionTimestamp) {
      return now;
    }
    const since = dateOf(status?.chargedAt) ?? decidedAt(run) ?? now;
    if (isOneOff(run) && !isRefused(run) && this.#isAmongNewest(run)) {
      return new Date(since.getTime() + KEEP_ONE_OFF_MS);
    }
    if (isNeverStarted(run) && status?.phase !== "cancelled") {
      return now;
    }
    const keepMs = isRefused(run) || isNeverStarted(run) ? KEEP_REFUSED_MS : KEEP_CHARGED_MS;
    return new Date(since.getTime() + keepMs);
  }

  /** Its exit code and its command are in the JobRun alone: those of a project's newest one-off runs are kept longer. */
  #isAmongNewest(run: JobRun): boolean {
    const runs = this.#deps.stores.runs.byIndex(BY_PROJECT, refKey(projectOfRun(run)));
    const newer = runs.filter((one) => isOneOff(one) && isOver(one) && !isRefused(one) && isNewer(one, run));
    const plan = this.#deps.catalog().httpPlans.find((one) => one.plan === run.status?.plan);
    return newer.length < (plan?.free ? KEEP_ONE_OFF_RUNS.freeProject : KEEP_ONE_OFF_RUNS.project);
  }
}

/** Whether the Job may yet be unsuspended for this run: as the one that it has recorded, or before it has recorded any. */
function isIncomplete(run: JobRun | undefined, job: Job): boolean {
  if (run === undefined || !isOneOff(run) || isOver(run)) {
    return false;
  }
  const jobUid = run.status?.jobUid;
  return jobUid === undefined ? controllerOf(job)?.uid === run.metadata.uid : jobUid === job.metadata.uid;
}

function isNewer(one: JobRun, other: JobRun): boolean {
  const [a, b] = [one, other].map(({ spec, metadata }) => `${Date.parse(spec.scheduledAt)}/${metadata.name}`);
  return (a ?? "") > (b ?? "");
}

/** When the last deciding condition of a run changed. */
function decidedAt({ status }: JobRun): Date | undefined {
  const moments = (status?.conditions ?? [])
    .filter(({ type }) => type === "Admitted" || type === "Finished")
    .map(({ lastTransitionTime }) => Date.parse(lastTransitionTime));
  return moments.length === 0 ? undefined : new Date(Math.max(...moments));
}
