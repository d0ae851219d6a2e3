import type { JobRun, Project } from "@slipway/crds";
import type { Admission } from "./admission.ts";
import type { Job } from "./cluster.ts";
import type { JobRunDependencies, RunContext } from "./context.ts";
import { isClosed, type JobState, jobStateOf, releasedState } from "./job-state.ts";
import { scheduledAtOf } from "./manifests.ts";
import { decideOccurrences, type OccurrenceDecision } from "./occurrences.ts";
import { priceOf } from "./pricing.ts";
import { isJobAdmitted } from "./run.ts";
import type { SlotWriter } from "./slot.ts";
import { BY_PROJECT } from "./stores.ts";

/** Step 3 of a reconcile: the slot and the occurrences of the schedule. */
export class OccurrenceStep {
  readonly #deps: JobRunDependencies;
  readonly #admission: Admission;
  readonly #slot: SlotWriter;

  constructor(deps: JobRunDependencies, admission: Admission, slot: SlotWriter) {
    this.#deps = deps;
    this.#admission = admission;
    this.#slot = slot;
  }

  /** One write releases the slot of a run that is over, follows the schedule, and decides due occurrences. */
  async decide(project: Project, key: string, occupied: boolean, context: RunContext): Promise<void> {
    if (project.spec.type !== "job" && project.status?.job === undefined) {
      return;
    }
    const { clock, stores, catalog, settings, leaderSince } = this.#deps;
    const holder = jobStateOf(project).activeRun;
    // Closing is acknowledged once every run that began before is in the cache.
    if (holder !== undefined && isClosed(project) && !stores.runs.get(project.metadata.namespace, holder)) {
      return;
    }
    const waiting = new Map<number, Job>();
    for (const job of stores.jobs.byIndex(BY_PROJECT, key)) {
      const at = scheduledAtOf(job, project.metadata.name);
      if (at && !isJobAdmitted(job) && !job.metadata.deletionTimestamp) {
        waiting.set(at.getTime(), job);
      }
    }
    const decide = (current: Project): OccurrenceDecision => {
      const released = releasedState(current, holderOf(current, stores), clock.now());
      const admission = decideOccurrences(
        {
          project: withState(current, released.state),
          now: clock.now(),
          leaderSince: leaderSince(),
          windowMs: settings.windowMs,
          occupied,
          hasJob: (at) => waiting.has(at.getTime()),
          priced: priceOf(catalog(), current.spec.plan) !== undefined,
        },
        (at) => waiting.get(at.getTime())?.metadata.name ?? "",
      );
      return { ...admission, missed: [...released.missed, ...admission.missed] };
    };
    const { project: written, decision } = await this.#slot.change(project, decide, context.signal);
    if (!written || !decision) {
      return;
    }
    this.#admission.reportMissed(written, decision.missed);
    if (decision.requeueAt) {
      context.requeue.at(decision.requeueAt, clock.now());
    }
    const job = decision.admitted && waiting.get(decision.admitted.getTime());
    if (decision.admitted && job) {
      await this.#admission.admitOccurrence(written, job, decision.admitted, context);
    }
  }
}

function withState(project: Project, job: JobState): Project {
  return { ...project, status: { ...project.status, job } };
}

/** The run that has a project's slot, while it exists. */
function holderOf(
  project: Project,
  { runs }: Pick<JobRunDependencies["stores"], "runs">,
): JobRun | undefined {
  const { activeRun } = jobStateOf(project);
  return activeRun === undefined ? undefined : runs.get(project.metadata.namespace, activeRun);
}
