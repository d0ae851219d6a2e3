/** Whether each committed change of a project decides on its occurrences, and on its slot, as its schedule and its runs allow. */

import { jobRunName } from "@slipway/crds";
import type { Change } from "./apiserver.ts";
import { faultsOfDecision, type JobStatus } from "./decision-rules.ts";
import type { StoredProject } from "./objects.ts";
import { isStartKnown } from "./run-truth.ts";
import type { Timeline } from "./timeline.ts";
import type { ProjectTruth, Truths } from "./truths.ts";
import type { ViolationLog } from "./violation-log.ts";

export interface ProjectCheckOptions {
  windowMs: number;
  /** Most milliseconds by which two clocks differ. */
  skewMs: number;
  /** Most milliseconds that pass between a decision and what it leads to. */
  latencyMs: number;
}

export class ProjectChecks {
  /** Occurrences by their outcome. */
  readonly decided: Record<string, number> = { admitted: 0 };
  readonly #timeline: Timeline;
  readonly #truths: Truths;
  readonly #log: ViolationLog;
  readonly #options: ProjectCheckOptions;

  constructor(timeline: Timeline, truths: Truths, log: ViolationLog, options: ProjectCheckOptions) {
    this.#timeline = timeline;
    this.#truths = truths;
    this.#log = log;
    this.#options = options;
  }

  check({ type, object, old }: Change<StoredProject>): void {
    const id = object.metadata.name;
    const { now } = this.#timeline;
    const truth = this.#truths.project(id);
    if (type === "delete") {
      this.#log.record(id, () => "project deleted");
      return;
    }
    const deleting = object.metadata.deletionTimestamp !== undefined;
    if (object.spec !== old?.spec || deleting !== (old?.metadata.deletionTimestamp !== undefined)) {
      truth.changes.push({ at: now, spec: object.spec, deleting });
      const { job, paused, plan } = object.spec;
      this.#log.record(
        id,
        () => `spec: ${text({ cron: job?.cron, closed: job?.closedAt, paused, plan, deleting })}`,
      );
    }
    const [before, after] = [old?.status?.job ?? {}, object.status?.job ?? {}];
    if (after === before || old === undefined) {
      return;
    }
    this.#checkDecision(truth, before, after);
  }

  #checkDecision(truth: ProjectTruth, before: JobStatus, after: JobStatus): void {
    const { now } = this.#timeline;
    const { id } = truth;
    const { activeRun, lastScheduledAt, lastFinishedAt, scheduledSince, missedReasons } = after;
    const counts = (missedReasons ?? []).map(({ reason, count }) => `${reason} ${count}`).join(", ");
    this.#log.record(
      id,
      () =>
        `status: ${text({ activeRun, lastScheduledAt, lastFinishedAt, scheduledSince })} missed ${counts}`,
    );
    const result = faultsOfDecision({
      before,
      after,
      changes: truth.changes,
      now,
      windowMs: this.#options.windowMs,
      slackMs: 2 * this.#options.skewMs + this.#options.latencyMs,
      nameOf: (scheduledAt) => jobRunName(id, new Date(scheduledAt)),
    });
    for (const fault of result.faults) {
      this.#log.violate(id, fault);
    }
    for (const [reason, count] of Object.entries(result.missed)) {
      this.decided[reason] = (this.decided[reason] ?? 0) + count;
    }
    if (result.released) {
      this.#checkRelease(id, result.released);
    }
    if (result.admitted !== undefined) {
      this.decided.admitted = (this.decided.admitted ?? 0) + 1;
      this.#checkOverlap(id, result.admitted);
    }
  }

  /** A slot is released once the container has ended, or can never start; what never ran is counted, once. */
  #checkRelease(project: string, { run, missed }: { run: string; missed: boolean }): void {
    const truth = this.#truths.run(run, project);
    const running = truth.containers.some(({ endedAt }) => endedAt === undefined);
    if (running && !truth.tampered) {
      this.#log.violate(project, `the slot of ${run} was released while it runs`);
    }
    if (missed && isStartKnown(truth)) {
      this.#log.violate(project, `${run} ran and is counted as missed`);
    }
    if (missed) {
      this.decided.admitted = (this.decided.admitted ?? 0) - 1;
    }
    if (missed || truth.trigger === "manual" || truth.containers.length > 0) {
      return;
    }
    if (!truth.cancelled) {
      this.#log.violate(project, `${run} never ran and is not counted as missed`);
    }
  }

  /** An occurrence at whose minute another run was active is missed. */
  #checkOverlap(project: string, scheduledAt: number): void {
    const margin = 2 * this.#options.skewMs + 1_500;
    for (const truth of this.#truths.newestOf(project)) {
      for (const { startedAt, endedAt, lost } of truth.containers) {
        const active =
          startedAt < scheduledAt - margin && (endedAt ?? Number.POSITIVE_INFINITY) > scheduledAt + margin;
        if (active && !lost && !truth.tampered) {
          this.#log.violate(project, `admitted ${iso(scheduledAt)}, when ${truth.name} was active`);
        }
      }
    }
  }
}

const iso = (at: number) => new Date(at).toISOString();
const text = (value: unknown) => JSON.stringify(value);
