/**
 * Brings the runs of one project on, step by step. One key for each project, so that all that is decided about it is
 * decided one after another; every write holds only for what it was decided from, so that a second operator does no harm.
 */

import {
  type ObjectRef,
  type ReconcileContext,
  type Reconciler,
  type Result,
  refKey,
  refOf,
} from "@slipway/controller-runtime";
import { type JobRun, jobRunName, type Project } from "@slipway/crds";
import { projectResource } from "../../resources.ts";
import { LetGo } from "./admission.ts";
import { Rush } from "./burst.ts";
import { Settlement } from "./charge.ts";
import { CleanUp } from "./cleanup.ts";
import { JOB_NAME, type Job } from "./cluster.ts";
import { dateOf } from "./completion.ts";
import type { JobRunDependencies } from "./context.ts";
import { countMissed, isClosed, type JobState, jobStateOf, type Missed, releaseSlot } from "./job-state.ts";
import { Leftovers } from "./leftovers.ts";
import { scheduledAtOf } from "./manifests.ts";
import { ManualRuns } from "./manual.ts";
import { RunObjects } from "./objects.ts";
import { type Admission, decideAdmission } from "./occurrences.ts";
import { priceOf } from "./pricing.ts";
import { type RunContext, RunProgress } from "./progress.ts";
import { isEnded, isLetGo, isNeverStarted, isOver, isRefused, isSettled, wasLetGo } from "./run.ts";
import { LOOK_AGAIN_MS } from "./settings.ts";
import { SlotWriter } from "./slot.ts";
import { BY_PROJECT } from "./stores.ts";
import { WakeUp } from "./wake-up.ts";

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
  readonly #letGo: LetGo;
  readonly #manual: ManualRuns;
  readonly #settlement: Settlement;
  readonly #cleanUp: CleanUp;
  readonly #leftovers: Leftovers;
  readonly #rush: Rush;

  constructor(deps: JobRunDependencies) {
    this.#deps = deps;
    this.#objects = new RunObjects(deps.cluster, deps.stores);
    this.#slot = new SlotWriter(deps.cluster, deps.stores.projects);
    this.#progress = new RunProgress(deps, this.#objects);
    this.#letGo = new LetGo(deps, this.#objects, this.#slot);
    this.#manual = new ManualRuns(deps, this.#objects, this.#slot);
    this.#settlement = new Settlement(deps, this.#objects);
    this.#cleanUp = new CleanUp(deps, this.#objects, this.#slot);
    this.#leftovers = new Leftovers(this.#objects);
    this.#rush = new Rush(deps.stores.projects, deps.clock);
  }

  async reconcile(ref: ObjectRef, { signal }: ReconcileContext): Promise<Result | undefined> {
    const key = refKey(ref);
    if (!this.#concerns(ref, key)) {
      return undefined;
    }
    const context: RunContext = { signal, wake: new WakeUp() };
    const failures = new Failures();
    await failures.each(this.#runs(key), (run) => this.#follow(run, ref, context));
    // Everything from here on builds on the slot.
    await this.#carryThrough(ref, context);
    const occupied = await this.#leftovers.stop(this.#runs(key), context);
    await this.#decide(ref, key, occupied, context);
    await failures.each(this.#runs(key), (run) => this.#undecided(run, ref, occupied, context));
    await failures.each(this.#runs(key), (run) => this.#settle(run, key, ref, context));
    await this.#removeStrays(ref, key, context);
    failures.rethrow();
    const { ms } = context.wake;
    return ms === undefined ? undefined : { requeueAfterMs: ms };
  }

  /** Step 1: runs that were let go are followed to their end. */
  async #follow(run: JobRun, ref: ObjectRef, context: RunContext): Promise<void> {
    if (!isOver(run) && this.#wasLetGo(run)) {
      await this.#progress.bring(run, this.#project(ref), context);
    }
  }

  /** Step 2: what taking the slot began is carried through, or taken back. */
  async #carryThrough(ref: ObjectRef, context: RunContext): Promise<void> {
    const project = this.#project(ref);
    const name = project && jobStateOf(project).activeRun;
    if (!project || name === undefined) {
      return;
    }
    const run = this.#deps.stores.runs.get(ref.namespace, name);
    if (!run || (!isOver(run) && !this.#wasLetGo(run))) {
      await this.#letGo.resume(project, context);
    }
  }

  /** Step 3: one write frees the slot of a run that is over, follows the schedule, and decides what is due. */
  async #decide(ref: ObjectRef, key: string, occupied: boolean, context: RunContext): Promise<void> {
    const project = this.#project(ref);
    if (!project || (project.spec.type !== "job" && project.status?.job === undefined)) {
      return;
    }
    const { clock, stores, catalog, settings, ledSince } = this.#deps;
    const holder = jobStateOf(project).activeRun;
    // Closing is acknowledged once every run that began before can be seen.
    if (holder !== undefined && isClosed(project) && !stores.runs.get(ref.namespace, holder)) {
      return;
    }
    const waiting = new Map<number, Job>();
    for (const job of stores.jobs.byIndex(BY_PROJECT, key)) {
      const at = scheduledAtOf(job, ref.name);
      if (at && !isLetGo(job) && !job.metadata.deletionTimestamp) {
        waiting.set(at.getTime(), job);
      }
    }
    const decide = (current: Project): Admission => {
      const freed = this.#freed(current);
      const admission = decideAdmission(
        {
          project: withState(current, freed.state),
          now: clock.now(),
          ledSince: ledSince(),
          windowMs: settings.windowMs,
          occupied,
          hasJob: (at) => waiting.has(at.getTime()),
          priced: priceOf(catalog(), current.spec.plan) !== undefined,
        },
        (at) => waiting.get(at.getTime())?.metadata.name ?? "",
      );
      return { ...admission, missed: [...freed.missed, ...admission.missed] };
    };
    const { project: written, decision } = await this.#slot.change(project, decide, context.signal);
    if (!written || !decision) {
      return;
    }
    this.#letGo.tellMissed(written, decision.missed);
    if (decision.againAt) {
      context.wake.at(decision.againAt, clock.now());
    }
    const job = decision.admitted && waiting.get(decision.admitted.getTime());
    if (decision.admitted && job) {
      await this.#letGo.begin(written, job, decision.admitted, context);
    }
  }

  /** Step 4: runs that hold no slot and were never let go are those asked for by hand, or nobody's. */
  async #undecided(run: JobRun, ref: ObjectRef, occupied: boolean, context: RunContext): Promise<void> {
    const project = this.#project(ref);
    const { name } = run.metadata;
    if (isOver(run) || this.#wasLetGo(run)) {
      return;
    }
    if (project && jobStateOf(project).activeRun === name) {
      // It took the slot in this very pass, or has been looked at in step 2.
      context.wake.in(1_000);
      return;
    }
    const live = project ?? (await this.#liveProject(ref, context.signal));
    if (run.spec.trigger === "manual") {
      await this.#manual.decide(run, live, occupied, context);
      const taken = this.#project(ref);
      if (taken && jobStateOf(taken).activeRun === name) {
        await this.#letGo.resume(taken, context);
      }
      return;
    }
    await this.#removeUnheld(run, live, context);
  }

  /** Step 5: ended runs are charged; what is settled goes. */
  async #settle(run: JobRun, key: string, ref: ObjectRef, context: RunContext): Promise<void> {
    const project = this.#project(ref);
    const waits = this.#rush.delays(run, project);
    if (waits) {
      context.wake.in(LOOK_AGAIN_MS);
    }
    if (isEnded(run) && !isSettled(run)) {
      await this.#settlement.bring(key, run, waits, context);
    }
    const over = isRefused(run) || ((isEnded(run) || isNeverStarted(run)) && isSettled(run));
    const holds = project !== undefined && jobStateOf(project).activeRun === run.metadata.name;
    if (over && !holds && waits) {
      return;
    }
    if (over && !holds) {
      await this.#cleanUp.settled(run, project, context);
    } else if (over) {
      context.wake.in(1);
    }
  }

  /** Step 6: Jobs of occurrences that were not admitted, and what has lost its owner. */
  async #removeStrays(ref: ObjectRef, key: string, context: RunContext): Promise<void> {
    const { stores } = this.#deps;
    const hasRun = (name: string) => stores.runs.get(ref.namespace, name) !== undefined;
    const hasJob = (name: string) => stores.jobs.get(ref.namespace, name) !== undefined;
    const project = this.#project(ref);
    await this.#cleanUp.strayJobs(stores.jobs.byIndex(BY_PROJECT, key), hasRun, project, context);
    const pods = stores.pods.byIndex(BY_PROJECT, key);
    const jobOf = (pod: (typeof pods)[number]) => pod.metadata.labels?.[JOB_NAME];
    await this.#cleanUp.strayPods(pods, { run: hasRun, job: hasJob }, jobOf, context);
  }

  /** The state without a run that is over, and what has to be counted for it. */
  #freed(project: Project): { state: JobState; missed: Missed[] } {
    const { clock, stores } = this.#deps;
    const state = jobStateOf(project);
    const run =
      state.activeRun === undefined
        ? undefined
        : stores.runs.get(project.metadata.namespace, state.activeRun);
    if (!run || !isOver(run)) {
      return { state, missed: [] };
    }
    const freed = releaseSlot(state, isEnded(run) ? run : undefined, clock.now());
    const missed: Missed[] = [];
    if (isNeverStarted(run) && run.spec.trigger === "schedule" && run.status?.phase === undefined) {
      missed.push({ scheduledAt: new Date(run.spec.scheduledAt), reason: "NeverStarted" });
    }
    const last = dateOf(state.lastScheduledAt);
    if (last && !isEnded(run) && run.spec.trigger === "manual" && isNameOf(run, project, last)) {
      // Somebody had made a run of its name by hand, which never was one.
      missed.push({ scheduledAt: last, reason: "NotCreated" });
    }
    return { state: countMissed(freed, missed), missed };
  }

  /** A scheduled run without the slot: made by a leader that was stopped meanwhile, or by hand. */
  async #removeUnheld(
    run: JobRun,
    project: Project | undefined,
    { signal, wake }: RunContext,
  ): Promise<void> {
    const ref = refOf(run);
    const job = await this.#objects.live(this.#objects.jobs, ref, signal);
    const now = project && (await this.#slot.live(project, signal));
    const live = await this.#objects.live(this.#objects.runs, ref, signal);
    const pods = await this.#objects.livePodsOf(ref, signal);
    const held = now !== undefined && jobStateOf(now).activeRun === run.metadata.name;
    if (!live || held || isOver(live) || pods.length > 0 || wasLetGo(live, job)) {
      wake.in(1);
      return;
    }
    await this.#cleanUp.removeRun(live, signal);
  }

  /** Whether a run's pod may have started, as far as it is known here. */
  #wasLetGo(run: JobRun): boolean {
    const ref = refOf(run);
    const job = this.#deps.stores.jobs.get(ref.namespace, ref.name);
    return wasLetGo(run, job) || this.#objects.podsOf(ref).length > 0;
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

  #concerns(ref: ObjectRef, key: string): boolean {
    const project = this.#project(ref);
    if (project && (project.spec.type === "job" || project.status?.job !== undefined)) {
      return true;
    }
    const { runs, jobs, pods } = this.#deps.stores;
    return [runs, jobs, pods].some((store) => store.byIndex(BY_PROJECT, key).length > 0);
  }
}

function withState(project: Project, job: JobState): Project {
  return { ...project, status: { ...project.status, job } };
}

const isNameOf = (run: JobRun, project: Project, scheduledAt: Date): boolean =>
  run.metadata.name === jobRunName(project.metadata.name, scheduledAt);

/** What goes wrong with one run must not hold up the others: the first failure is thrown when all have had their turn. */
class Failures {
  #first: { error: unknown } | undefined;

  async each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
    for (const item of items) {
      try {
        await work(item);
      } catch (error) {
        this.#first ??= { error };
      }
    }
  }

  rethrow(): void {
    if (this.#first) {
      throw this.#first.error;
    }
  }
}
