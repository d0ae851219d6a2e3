/** What was observed of runs and projects, line by line: nothing can be read once the environment is deleted. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import type { JobRun, Project } from "@slipway/crds";
import type { Records, Violation } from "./checks.ts";

/** The part of a Pod that is read. */
export interface Pod extends KubernetesObject {
  status?: {
    containerStatuses?: {
      state?: {
        running?: { startedAt?: string | null };
        terminated?: { exitCode: number; startedAt?: string | null; finishedAt?: string | null };
      };
    }[];
  };
}

/** The part of a Job that is read. */
export interface Job extends KubernetesObject {
  spec?: { suspend?: boolean };
  status?: {
    active?: number;
    terminating?: number;
    succeeded?: number;
    failed?: number;
    conditions?: { type: string; status: string; reason?: string }[];
  };
}

/** Lines of one subject that are kept: its beginning, which explains most. */
const MAX_LINES = 60;

/** Lines by run or project, each with the moment at which it was observed. */
export class ObservationLog {
  readonly #lines = new Map<string, string[]>();

  /** Adds a line unless it repeats the last one of this object. */
  add(subject: string, line: string): void {
    const lines = this.#lines.get(subject) ?? [];
    this.#lines.set(subject, lines);
    const object = line.split(":", 1)[0] ?? "";
    const last = lines.findLast((known) => known.slice(MOMENT).startsWith(`${object}:`))?.slice(MOMENT);
    if (last === line || lines.length > MAX_LINES) {
      return;
    }
    lines.push(`${new Date().toISOString().slice(11, 23)} ${lines.length === MAX_LINES ? "…" : line}`);
  }

  of(subject: string): readonly string[] {
    return this.#lines.get(subject) ?? [];
  }
}

/** Length of a moment with its space. */
const MOMENT = 13;

/** What a project's status has of its schedule, and the ledger of a run: the last lines of their log. */
export function recordLines(subject: string, { projects, runs, charges }: Records): string[] {
  const lines = <T>(what: string, all: readonly T[], isIts: (one: T) => boolean) =>
    all.filter(isIts).map((one) => `${what} ${JSON.stringify(one)}`);
  return [
    ...lines("project", projects, ({ id }) => id === subject),
    ...lines("ledger", runs, ({ id }) => id === subject),
    ...lines("charge", charges, ({ run }) => run === subject),
  ];
}

export function podLine({ metadata, status }: Pod, deleted: boolean): string {
  const { running, terminated } = status?.containerStatuses?.[0]?.state ?? {};
  const ended =
    terminated && `ended ${terminated.exitCode} ${terminated.startedAt} to ${terminated.finishedAt}`;
  const state = ended ?? (running ? `running since ${running.startedAt}` : "not started");
  const finalizers = `finalizers [${(metadata?.finalizers ?? []).join(", ")}]`;
  return `pod ${metadata?.name}: ${state}, ${finalizers}${deletion(metadata)}${deleted ? ", deleted" : ""}`;
}

export function jobLine({ metadata, spec, status }: Job, deleted: boolean): string {
  const { active, terminating, succeeded, failed, conditions = [] } = status ?? {};
  const counts = JSON.stringify({ active, terminating, succeeded, failed });
  const summary = conditions.map(({ type, status: value, reason }) => ` ${type}=${value} ${reason}`);
  const state = spec?.suspend ? "suspended" : "admitted";
  return `Job: ${state} ${counts}${summary.join("")}${deletion(metadata)}${deleted ? ", deleted" : ""}`;
}

export function jobRunLine({ metadata, spec, status }: JobRun, deleted: boolean): string {
  const { phase, podName, startedAt, finishedAt, billedUntil, lastObservedRunningAt, chargedAt } =
    status ?? {};
  const { cancelRequestedAt } = spec;
  const times = { startedAt, lastObservedRunningAt, cancelRequestedAt, finishedAt, billedUntil, chargedAt };
  const conditions = (status?.conditions ?? []).map(({ type, status: value }) => ` ${type}=${value}`);
  const state = `${phase ?? "no phase"} ${podName ?? "no pod"} ${JSON.stringify(times)}${conditions.join("")}`;
  return `JobRun: ${state}${deletion(metadata)}${deleted ? ", deleted" : ""}`;
}

export function projectLine({ metadata, status }: Project, deleted: boolean): string {
  const { activeRun, scheduledSince, lastScheduledAt, lastFinishedAt, missed } = status?.job ?? {};
  const job = { activeRun, scheduledSince, lastScheduledAt, lastFinishedAt, missed };
  return `project: ${JSON.stringify(job)}${deletion(metadata)}${deleted ? ", deleted" : ""}`;
}

function deletion(metadata: KubernetesObject["metadata"]): string {
  return metadata?.deletionTimestamp === undefined
    ? ""
    : `, deletion requested ${metadata.deletionTimestamp}`;
}

/** A violation with all that was observed of the run or the project that it is about. */
export interface ReportedViolation extends Violation {
  log: readonly string[];
}

/** @throws Error with every violation in a line, and then what was observed of each subject */
export function expectNoViolations(wrong: readonly ReportedViolation[]): void {
  if (wrong.length === 0) {
    return;
  }
  const lines = wrong.map(({ rule, subject, detail }) => `${rule}: ${subject}: ${detail}`);
  const logs = new Map(wrong.map(({ subject, log }) => [subject, log]));
  const seen = [...logs].flatMap(([subject, log]) => [`what was observed of ${subject}:`, ...log]);
  throw new Error([...lines, ...seen].join("\n"));
}
