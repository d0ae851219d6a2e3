/** Manual runs: admitted when the slot is free, rejected otherwise. */

import { equalJson, hasFinalizer } from "@slipway/controller-runtime";
import { finalizers, type JobRun, type JobRunReason, jobRunName, type Project } from "@slipway/crds";
import type { JobRunDependencies, RunContext } from "./context.ts";
import { hasAcceptedCondition, isAccepted, isClosed, type JobState, jobStateOf } from "./job-state.ts";
import { runMetadata } from "./manifests.ts";
import type { RunObjects } from "./objects.ts";
import { priceOf } from "./pricing.ts";
import { dateOf, projectUidOf } from "./run.ts";
import { POLL_INTERVAL_MS } from "./settings.ts";
import type { SlotWriter } from "./slot.ts";
import { neverStarted, refused } from "./status.ts";

/** How far `scheduledAt` of a run may be from its creation by the cluster's clock: its charge is stored under it. */
const MAX_SCHEDULED_APART_MS = 600_000;

/** Why a run cannot be admitted. */
export interface Refusal {
  reason: JobRunReason;
  message: string;
}

/** What a manual run is decided from. */
export interface ManualView {
  run: JobRun;
  project: Project | undefined;
  now: Date;
  windowMs: number;
  /** Whether a pod of a run that is over still runs. */
  occupied: boolean;
  priced: boolean;
  /** Whether a project of this id exists in the run's namespace. */
  isProject(id: string): boolean;
}

/** Why a manual run is refused; undefined when it acquires the slot. Pure. */
export function refusalOf({
  run,
  project,
  now,
  windowMs,
  occupied,
  priced,
  isProject,
}: ManualView): Refusal | undefined {
  const refuse = (reason: JobRunReason, message: string): Refusal => ({ reason, message });
  if (!project) {
    return refuse("ProjectGone", "There is no such project.");
  }
  if (project.spec.type !== "job") {
    return refuse("NotAccepted", "The project is not a scheduled job.");
  }
  const owner = projectUidOf(run);
  if (owner !== undefined && owner !== project.metadata.uid) {
    return refuse("ProjectGone", "The project that it was for was deleted.");
  }
  if (isClosed(project)) {
    return refuse("ScheduleClosed", "The job is closed: no new run begins.");
  }
  if (project.spec.paused) {
    return refuse("Paused", "The project is paused.");
  }
  if (!isAccepted(project) || !priced) {
    return refuse("NotAccepted", "The project is not accepted.");
  }
  const name = nameProblem(run, project.metadata.name, isProject);
  if (name !== undefined) {
    return refuse("NotAccepted", name);
  }
  const blocked = occupied || jobStateOf(project).activeRun !== undefined;
  if (blocked) {
    return refuse("Overlap", "Another run is active.");
  }
  const requestedAt = Date.parse(run.metadata.creationTimestamp ?? "");
  if (Math.abs(Date.parse(run.spec.scheduledAt) - requestedAt) > MAX_SCHEDULED_APART_MS) {
    return refuse("NotAccepted", "Its scheduledAt must be when it was asked for: now.");
  }
  if (now.getTime() >= requestedAt + windowMs) {
    return refuse("Late", "It was asked for too long ago.");
  }
  return undefined;
}

/**
 * The ledger identifies a run by its name, which must contain its minute, as those of scheduled runs do. Its Job has the same
 * name, so it must not be that of any project's occurrence.
 */
function nameProblem(
  { metadata: { name }, spec }: JobRun,
  projectId: string,
  isProject: (id: string) => boolean,
): string | undefined {
  const prefix = `${jobRunName(projectId, new Date(spec.scheduledAt))}-`;
  const suffix = name.startsWith(prefix) ? name.slice(prefix.length) : "";
  if (!/^[a-z0-9]{1,10}$/.test(suffix)) {
    return `Its name must be ${prefix} (the minutes since 1970 of scheduledAt) and 1 to 10 of a-z, 0-9.`;
  }
  const minute = /^(.+)-[0-9]+$/.exec(name)?.[1];
  return minute !== undefined && isProject(minute) ? "Its name is that of a scheduled run." : undefined;
}

export class ManualRuns {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;
  readonly #slot: SlotWriter;

  constructor(deps: JobRunDependencies, objects: RunObjects, slot: SlotWriter) {
    this.#deps = deps;
    this.#objects = objects;
    this.#slot = slot;
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
    if (project?.spec.type !== "job") {
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
