/**
 * Reconciles the runs of one project, step by step. There is one key for each project, so that all decisions about it are
 * created in sequence; every write is conditional on the version that it was decided from, so that a second operator does no harm.
 */

import {
  type ObjectRef,
  type ReconcileContext,
  type Reconciler,
  type Result,
  refKey,
  refOf,
} from "@slipway/controller-runtime";
import { isOneOff, type JobRun, type Project } from "@slipway/crds";
import { projectResource } from "../../resources.ts";
import { Admission } from "./admission.ts";
import { OccurrenceBurst } from "./burst.ts";
import { ChargeStep } from "./charge.ts";
import { Cleanup } from "./cleanup.ts";
import { JOB_NAME } from "./cluster.ts";
import { Failures, type JobRunDependencies, Requeue, type RunContext } from "./context.ts";
import { jobStateOf } from "./job-state.ts";
import { Leftovers } from "./leftovers.ts";
import { ManualRuns } from "./manual.ts";
import { RunObjects } from "./objects.ts";
import { OccurrenceStep } from "./occurrence-step.ts";
import { OneOffRuns } from "./one-off.ts";
import { RunProgress } from "./progress.ts";
import { isAdmitted, isCharged, isEnded, isNeverStarted, isOver, isRefused } from "./run.ts";
import { POLL_INTERVAL_MS } from "./settings.ts";
import { SlotWriter } from "./slot.ts";
import { BY_PROJECT } from "./stores.ts";

/** Makes the reconciler; its keys are those of Projects. */
export function jobRunReconciler(deps: JobRunDependencies): Reconciler {
  const steps = new JobRunSteps(deps);
  return (ref, context) => steps.reconcile(ref, context);
}

class JobRunSteps {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;
  readonly #slot: SlotWriter;
  readonly #progress: RunProgress;
  readonly #admission: Admission;
  readonly #occurrences: OccurrenceStep;
  readonly #oneOff: OneOffRuns;
  readonly #manual: ManualRuns;
  readonly #charges: ChargeStep;
  readonly #cleanup: Cleanup;
  readonly #leftovers: Leftovers;
  readonly #burst: OccurrenceBurst;

  constructor(deps: JobRunDependencies) {
    this.#deps = deps;
    this.#objects = new RunObjects(deps.cluster, deps.stores);
    this.#slot = new SlotWriter(deps.cluster, deps.stores.projects);
    this.#progress = new RunProgress(deps, this.#objects);
    this.#admission = new Admission(deps, this.#objects, this.#slot);
    this.#occurrences = new OccurrenceStep(deps, this.#admission, this.#slot);
    this.#oneOff = new OneOffRuns(deps, this.#objects);
    this.#manual = new ManualRuns(deps, this.#objects, this.#slot, this.#oneOff);
    this.#charges = new ChargeStep(deps, this.#objects);
    this.#cleanup = new Cleanup(deps, this.#objects, this.#slot);
    this.#leftovers = new Leftovers(this.#objects);
    this.#burst = new OccurrenceBurst(deps.stores.projects, deps.clock);
  }

  async reconcile(ref: ObjectRef, { signal }: ReconcileContext): Promise<Result | undefined> {
    const key = refKey(ref);
    if (!this.#isRelevant(ref, key)) {
      return undefined;
    }
    const context: RunContext = { signal, requeue: new Requeue() };
    const failures = new Failures();
    await failures.each(this.#runs(key), (run) => this.#reconcileAdmitted(run, ref, context));
    // All later steps depend on the slot.
    await this.#resumeAdmission(ref, context);
    const occupied = await this.#leftovers.stop(this.#runs(key), context);
    const project = this.#project(ref);
    if (project) {
      await this.#occurrences.decide(project, key, occupied, context);
    }
    await failures.each(this.#runs(key), (run) => this.#decideManualRun(run, ref, occupied, context));
    await failures.each(this.#runs(key), (run) => this.#chargeAndCleanUp(run, key, ref, context));
    await this.#deleteOrphans(ref, key, context);
    failures.rethrow();
    const { ms } = context.requeue;
    return ms === undefined ? undefined : { requeueAfterMs: ms };
  }

  /** Step 1: admitted runs are reconciled until they have ended. */
  async #reconcileAdmitted(run: JobRun, ref: ObjectRef, context: RunContext): Promise<void> {
    if (isOver(run) || !this.#isAdmitted(run)) {
      return;
    }
    if (isOneOff(run)) {
      await this.#oneOff.start(run, context);
    }
    await this.#progress.reconcile(run, this.#project(ref), context);
  }

  /** Step 2: an admission that began with acquiring the slot is completed, or withdrawn. */
  async #resumeAdmission(ref: ObjectRef, context: RunContext): Promise<void> {
    const project = this.#project(ref);
    const name = project && jobStateOf(project).activeRun;
    if (!project || name === undefined) {
      return;
    }
    const run = this.#deps.stores.runs.get(ref.namespace, name);
    if (!run || (!isOver(run) && !this.#isAdmitted(run))) {
      await this.#admission.resume(project, context);
    }
  }

  /** Step 4: runs without the slot that were never admitted are manual ones to decide, or orphans to delete. */
  async #decideManualRun(run: JobRun, ref: ObjectRef, occupied: boolean, context: RunContext): Promise<void> {
    const project = this.#project(ref);
    const { name } = run.metadata;
    if (isOver(run) || this.#isAdmitted(run)) {
      return;
    }
    if (project && jobStateOf(project).activeRun === name) {
      // It acquired the slot in this pass, or was handled in step 2.
      context.requeue.after(1_000);
      return;
    }
    const live = project ?? (await this.#liveProject(ref, context.signal));
    if (run.spec.trigger === "manual") {
      await this.#manual.decide(run, live, occupied, context);
      const changed = this.#project(ref);
      if (changed && jobStateOf(changed).activeRun === name) {
        await this.#admission.resume(changed, context);
      }
      return;
    }
    await this.#removeWithoutSlot(run, live, context);
  }

  /** Step 5: ended runs are charged, then cleaned up. */
  async #chargeAndCleanUp(run: JobRun, key: string, ref: ObjectRef, context: RunContext): Promise<void> {
    const project = this.#project(ref);
    const deferred = this.#burst.defersWrites(run, project);
    if (deferred) {
      context.requeue.after(POLL_INTERVAL_MS);
    }
    if (isEnded(run) && !isCharged(run)) {
      await this.#charges.reconcile(key, run, deferred, context);
    }
    const over = isRefused(run) || ((isEnded(run) || isNeverStarted(run)) && isCharged(run));
    const hasSlot = project !== undefined && jobStateOf(project).activeRun === run.metadata.name;
    if (over && !hasSlot && deferred) {
      return;
    }
    if (over && !hasSlot) {
      await this.#cleanup.cleanUpRun(run, project, context);
    } else if (over) {
      context.requeue.after(1);
    }
  }

  /** Step 6: Jobs of occurrences that were not admitted, and objects without an owner, are deleted. */
  async #deleteOrphans(ref: ObjectRef, key: string, context: RunContext): Promise<void> {
    const { stores } = this.#deps;
    const hasRun = (name: string) => stores.runs.get(ref.namespace, name) !== undefined;
    const hasJob = (name: string) => stores.jobs.get(ref.namespace, name) !== undefined;
    const project = this.#project(ref);
    await this.#cleanup.deleteOrphanedJobs(stores.jobs.byIndex(BY_PROJECT, key), hasRun, project, context);
    const pods = stores.pods.byIndex(BY_PROJECT, key);
    const jobOf = (pod: (typeof pods)[number]) => pod.metadata.labels?.[JOB_NAME];
    await this.#cleanup.releaseOrphanedPods(pods, { run: hasRun, job: hasJob }, jobOf, context);
  }

  /** A scheduled run without the slot: created by a leader that was stopped meanwhile, or by hand. */
  async #removeWithoutSlot(
    run: JobRun,
    project: Project | undefined,
    { signal, requeue }: RunContext,
  ): Promise<void> {
    const ref = refOf(run);
    const job = await this.#objects.live(this.#objects.jobs, ref, signal);
    const now = project && (await this.#slot.live(project, signal));
    const live = await this.#objects.live(this.#objects.runs, ref, signal);
    const pods = await this.#objects.livePodsOf(ref, signal);
    const hasSlot = now !== undefined && jobStateOf(now).activeRun === run.metadata.name;
    if (!live || hasSlot || isOver(live) || pods.length > 0 || isAdmitted(live, job)) {
      requeue.after(1);
      return;
    }
    await this.#cleanup.removeRun(live, signal);
  }

  /** Whether a run's pod may have started, by the caches. */
  #isAdmitted(run: JobRun): boolean {
    const ref = refOf(run);
    const job = this.#deps.stores.jobs.get(ref.namespace, ref.name);
    return isAdmitted(run, job) || this.#objects.podsOf(ref).length > 0;
  }

  #project({ namespace, name }: ObjectRef): Project | undefined {
    return this.#deps.stores.projects.get(namespace, name);
  }

  async #liveProject(ref: ObjectRef, signal: AbortSignal): Promise<Project | undefined> {
    const { cluster, stores } = this.#deps;
    const live = await cluster.getOrUndefined<Project>(projectResource, ref, { signal });
    if (live) {
      stores.projects.observe(live);
    }
    return live;
  }

  #runs(key: string): JobRun[] {
    return this.#deps.stores.runs.byIndex(BY_PROJECT, key);
  }

  #isRelevant(ref: ObjectRef, key: string): boolean {
    const project = this.#project(ref);
    if (project && (project.spec.type === "job" || project.status?.job !== undefined)) {
      return true;
    }
    const { runs, jobs, pods } = this.#deps.stores;
    return [runs, jobs, pods].some((store) => store.byIndex(BY_PROJECT, key).length > 0);
  }
}
