/** Runs that a client requests: one of a job is admitted when the slot is free, a one-off run within its bounds. */

import { equalJson, hasFinalizer } from "@slipway/controller-runtime";
import { finalizers, isOneOff, type JobRun, type Project } from "@slipway/crds";
import type { JobRunDependencies, RunContext } from "./context.ts";
import { hasAcceptedCondition, isClosed, type JobState, jobStateOf } from "./job-state.ts";
import { runMetadata } from "./manifests.ts";
import type { RunObjects } from "./objects.ts";
import type { OneOffRuns } from "./one-off.ts";
import { priceOf } from "./pricing.ts";
import { type Refusal, type RequestView, refusalOfRequest } from "./request.ts";
import { dateOf, hasOneOffRuns, projectUidOf } from "./run.ts";
import { POLL_INTERVAL_MS } from "./settings.ts";
import type { SlotWriter } from "./slot.ts";
import { neverStarted, refused } from "./status.ts";

/** What a manual run of a job is decided from. */
export interface ManualView extends RequestView {
  /** Whether a pod of a run that is over still runs. */
  occupied: boolean;
  priced: boolean;
}

/** Why a manual run is refused; undefined when it acquires the slot. Pure. */
export function refusalOf(view: ManualView): Refusal | undefined {
  return refusalOfRequest(view, {
    type: ({ spec }) => (spec.type === "job" ? undefined : "The project is not a scheduled job."),
    closed: (project) =>
      isClosed(project)
        ? { reason: "ScheduleClosed", message: "The job is closed: no new run begins." }
        : undefined,
    isComplete: view.priced,
    blocked: (project) =>
      view.occupied || jobStateOf(project).activeRun !== undefined
        ? { reason: "Overlap", message: "Another run is active." }
        : undefined,
  });
}

export class ManualRuns {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;
  readonly #slot: SlotWriter;
  readonly #oneOff: OneOffRuns;

  constructor(deps: JobRunDependencies, objects: RunObjects, slot: SlotWriter, oneOff: OneOffRuns) {
    this.#deps = deps;
    this.#objects = objects;
    this.#slot = slot;
    this.#oneOff = oneOff;
  }

  /**
   * Decides a manual run that has not been decided. Returns the project as it is then.
   * @param occupied whether a pod of a run that is over still runs
   */
  async decide(
    run: JobRun,
    seen: Project | undefined,
    occupied: boolean,
    { signal, requeue }: RunContext,
  ): Promise<Project | undefined> {
    const { clock } = this.#deps;
    if (run.spec.cancelRequestedAt !== undefined) {
      await this.#objects.writeStatus(run, neverStarted(run, clock.now()), signal);
      requeue.after(1);
      return seen;
    }
    if (run.metadata.deletionTimestamp) {
      await this.#objects.release(this.#objects.runs, run, signal);
      return seen;
    }
    const requestedAt = dateOf(run.metadata.creationTimestamp)?.getTime() ?? 0;
    if (
      seen &&
      !hasAcceptedCondition(seen) &&
      clock.now().getTime() < requestedAt + this.#deps.settings.windowMs
    ) {
      // It was applied together with its project, which the project controller has to accept first.
      requeue.after(POLL_INTERVAL_MS);
      return seen;
    }
    const marked = await this.#mark(run, seen, signal);
    if (isOneOff(run)) {
      // Nothing of the project is written: it is read live instead.
      const live = seen && (await this.#slot.live(seen, signal));
      await this.#oneOff.decide(marked, live, { signal, requeue });
      return live;
    }
    let refusal: Refusal | undefined;
    const acquire = (project: Project): { state: JobState } | undefined => {
      refusal = this.#refusal(marked, project, occupied);
      return refusal ? undefined : { state: { ...jobStateOf(project), activeRun: run.metadata.name } };
    };
    const { project } = seen ? await this.#slot.change(seen, acquire, signal) : { project: undefined };
    if (project === undefined) {
      refusal = this.#refusal(marked, undefined, occupied);
    }
    if (refusal) {
      const { reason, message } = refusal;
      await this.#objects.writeStatus(marked, refused(marked, reason, message, clock.now()), signal);
    }
    requeue.after(1);
    return project;
  }

  #refusal(run: JobRun, project: Project | undefined, occupied: boolean): Refusal | undefined {
    const { clock, settings, catalog, stores } = this.#deps;
    return refusalOf({
      run,
      project,
      now: clock.now(),
      windowMs: settings.windowMs,
      occupied,
      priced: priceOf(catalog(), project?.spec.plan) !== undefined,
      isProject: (id) => stores.projects.get(run.metadata.namespace, id) !== undefined,
    });
  }

  /** Sets labels, finalizer and owner before anything else, so that the run cannot be deleted before it is charged. */
  async #mark(run: JobRun, project: Project | undefined, signal: AbortSignal): Promise<JobRun> {
    const hasSuch = isOneOff(run) ? hasOneOffRuns : isScheduledJob;
    if (!project || !hasSuch(project)) {
      return run;
    }
    const { labels: wanted, finalizers: _ours, ownerReferences } = runMetadata(project);
    const owned = projectUidOf(run) !== undefined;
    const labelled = equalJson({ ...run.metadata.labels, ...wanted }, run.metadata.labels);
    if (owned && labelled && hasFinalizer(run, finalizers.jobRun)) {
      return run;
    }
    const metadata = {
      labels: wanted,
      finalizers: [...new Set([...(run.metadata.finalizers ?? []), finalizers.jobRun])],
      ...(owned ? {} : { ownerReferences: [...(run.metadata.ownerReferences ?? []), ...ownerReferences] }),
    };
    return await this.#objects.patch(this.#objects.runs, run, { metadata }, { signal });
  }
}

const isScheduledJob = ({ spec }: Project): boolean => spec.type === "job";
