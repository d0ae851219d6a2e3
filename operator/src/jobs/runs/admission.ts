/**
 * Admission of a run: from an acquired slot to an unsuspended Job. The Job's resourceVersion makes that happen once, if the Job
 * is read before the check that the slot is still the run's.
 */

import { refOf } from "@slipway/controller-runtime";
import type { JobRun, Project } from "@slipway/crds";
import { WaitingError } from "../../reconcile-errors.ts";
import { projectResource } from "../../resources.ts";
import type { Job } from "./cluster.ts";
import type { JobRunDependencies, RunContext } from "./context.ts";
import { countMissed, jobStateOf, type Missed, releaseSlot } from "./job-state.ts";
import { admissionPatch, identifyRun, newJob, newRun } from "./manifests.ts";
import type { RunObjects } from "./objects.ts";
import { windowEnd } from "./occurrences.ts";
import { currentPricing } from "./pricing.ts";
import { isAdmitted, isOver } from "./run.ts";
import { parseSchedule } from "./schedule.ts";
import type { SlotWriter } from "./slot.ts";
import { neverStarted, refused } from "./status.ts";

/** The run that has its project's slot. Its objects were read in this order: Job, project, run. */
interface SlotHolder {
  name: string;
  job: Job | undefined;
  project: Project;
  run?: JobRun;
}

type Trigger = JobRun["spec"]["trigger"];

export class Admission {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;
  readonly #slot: SlotWriter;

  constructor(deps: JobRunDependencies, objects: RunObjects, slot: SlotWriter) {
    this.#deps = deps;
    this.#objects = objects;
    this.#slot = slot;
  }

  /**
   * Admits an occurrence for which the slot was just acquired. That the slot was free before proves that it was never admitted.
   * @param job as it was read before the slot was acquired
   */
  async admitOccurrence(
    project: Project,
    job: Job,
    scheduledAt: Date,
    { signal, requeue }: RunContext,
  ): Promise<void> {
    const { name } = job.metadata;
    const closes = this.#windowEnd({ project }, "schedule", scheduledAt);
    const run = await this.#makeRun(project, name, "schedule", scheduledAt, signal);
    const late = run && !(await this.#admit({ project, job, run }, closes, signal));
    if (!run || late) {
      requeue.after(1);
    }
  }

  /** Completes an admission that this or another process began by acquiring the slot; withdraws it when it is too late. */
  async resume(project: Project, context: RunContext): Promise<void> {
    const { signal, requeue } = context;
    const holder = await this.#read(project, signal);
    if (!holder || (holder.run && isOver(holder.run))) {
      requeue.after(1);
      return;
    }
    const { job, run, name } = holder;
    const { trigger, scheduledAt } = run
      ? { trigger: run.spec.trigger, scheduledAt: new Date(run.spec.scheduledAt) }
      : identifyRun(name, project.metadata.name, job);
    const pods = job
      ? []
      : await this.#objects.livePodsOf({ namespace: project.metadata.namespace, name }, signal);
    if (isAdmitted(run, job) || pods.length > 0) {
      // Its JobRun is missing: it is created again, so that the run is charged.
      if (!run) {
        await this.#makeRun(holder.project, name, trigger, scheduledAt, signal);
      }
      requeue.after(1);
      return;
    }
    const closes = this.#windowEnd(holder, trigger, scheduledAt);
    const cancelled = run?.spec.cancelRequestedAt !== undefined;
    const startable = trigger === "manual" ? run !== undefined : job !== undefined;
    const leaving = job?.metadata.deletionTimestamp !== undefined;
    if (cancelled || leaving || !startable || this.#deps.clock.now() >= closes) {
      await this.#withdraw(holder, { trigger, scheduledAt, closes, cancelled }, signal);
      requeue.after(1);
      return;
    }
    if (job && run) {
      if (!(await this.#admit({ ...holder, job, run }, closes, signal))) {
        requeue.after(1);
      }
      return;
    }
    // The new object did not exist when the others were read: all are read again.
    if (run) {
      await this.#makeJob(holder.project, run, signal);
    } else {
      await this.#makeRun(holder.project, name, trigger, scheduledAt, signal);
    }
    await this.resume(project, context);
  }

  /** Undefined when the run does not have the slot any more. */
  async #read(project: Project, signal: AbortSignal): Promise<SlotHolder | undefined> {
    const name = jobStateOf(project).activeRun;
    if (name === undefined) {
      return undefined;
    }
    const ref = { namespace: project.metadata.namespace, name };
    const job = await this.#objects.live(this.#objects.jobs, ref, signal);
    const live = await this.#slot.live(project, signal);
    if (!live || jobStateOf(live).activeRun !== name) {
      return undefined;
    }
    const run = await this.#objects.live(this.#objects.runs, ref, signal);
    return { name, job, project: live, run };
  }

  /** Until when the run may be admitted. */
  #windowEnd(
    { project, run }: Pick<SlotHolder, "project" | "run">,
    trigger: Trigger,
    scheduledAt: Date,
  ): Date {
    const { windowMs } = this.#deps.settings;
    if (trigger === "manual") {
      const requestedAt = new Date(run?.metadata.creationTimestamp ?? 0);
      return new Date(requestedAt.getTime() + windowMs);
    }
    const { schedule } = jobStateOf(project);
    return schedule === undefined
      ? new Date(scheduledAt.getTime() + windowMs)
      : windowEnd(scheduledAt, parseSchedule(schedule), windowMs);
  }

  #makeRun(project: Project, name: string, trigger: Trigger, scheduledAt: Date, signal: AbortSignal) {
    return this.#objects.create(this.#objects.runs, newRun(project, name, trigger, scheduledAt), signal);
  }

  async #makeJob(project: Project, run: JobRun, signal: AbortSignal): Promise<void> {
    const cronJob = await this.#objects.cronJob(refOf(project), signal);
    if (!cronJob) {
      throw new WaitingError("Creating", "The project's CronJob is not there yet.", {
        requeueAfterMs: 1_000,
      });
    }
    await this.#objects.create(this.#objects.jobs, newJob(run, cronJob), signal);
  }

  /** False when it is too late. @throws KubeError 409 when the Job has changed since it was read */
  async #admit(
    { project, job, run }: { project: Project; job: Job; run: JobRun },
    closes: Date,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { clock, metrics, catalog } = this.#deps;
    const pricing = currentPricing(job, project, catalog());
    const now = clock.now();
    if (now >= closes) {
      return false;
    }
    if (!pricing) {
      throw new WaitingError("UnknownPlan", "The plan is not in the catalog.", { requeueAfterMs: 5_000 });
    }
    await this.#objects.patch(this.#objects.jobs, job, admissionPatch(job, pricing, now), { signal });
    if (run.spec.trigger === "schedule") {
      metrics.skew.observe((now.getTime() - Date.parse(run.spec.scheduledAt)) / 1_000);
      const created = Date.parse(job.metadata.creationTimestamp ?? "");
      if (created > 0) {
        metrics.admissionLatency.observe(Math.max(now.getTime() - created, 0) / 1_000);
      }
    }
    return true;
  }

  /** Deletes the Job, so that it never starts, and only then releases the slot. */
  async #withdraw(
    { job, project, run, name }: SlotHolder,
    about: { trigger: Trigger; scheduledAt: Date; closes: Date; cancelled: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, leaderSince } = this.#deps;
    if (job) {
      await this.#objects.remove(this.#objects.jobs, job, signal, { unchanged: true });
    }
    if (run && about.cancelled) {
      await this.#objects.writeStatus(run, neverStarted(run, clock.now()), signal);
    } else if (run && about.trigger === "manual") {
      const status = refused(run, "Late", "It could not be started in time.", clock.now());
      await this.#objects.writeStatus(run, status, signal);
    }
    const missed: Missed[] = [];
    if (about.trigger === "schedule" && !about.cancelled) {
      const early = about.closes <= leaderSince();
      const reason = early ? "OperatorUnavailable" : job ? "Late" : "NotCreated";
      missed.push({ scheduledAt: about.scheduledAt, reason });
    }
    const { decision } = await this.#slot.change(
      project,
      (current) => {
        const state = jobStateOf(current);
        if (state.activeRun !== name) {
          return undefined;
        }
        return { state: countMissed(releaseSlot(state, undefined, clock.now()), missed) };
      },
      signal,
    );
    if (decision) {
      this.reportMissed(project, missed);
    }
  }

  /** Counts missed occurrences and emits their events, once the status has them. */
  reportMissed(project: Project, missed: readonly Missed[]): void {
    for (const { scheduledAt, reason } of missed) {
      this.#deps.metrics.occurrenceMissed(reason);
      const note = `The run of ${scheduledAt.toISOString()} was missed.`;
      this.#deps.recorder.event(project, projectResource, {
        type: "Warning",
        reason,
        note,
        action: "Schedule",
      });
    }
  }
}
