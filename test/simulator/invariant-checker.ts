/** Observes every committed change and every container, and reports violations of the invariants of runs. */

import { resources } from "@slipway/controller-runtime";
import { annotations, finalizers, jobRunName } from "@slipway/crds";
import type { ChargedRun } from "../../operator/src/jobs/runs/ports.ts";
import { jobRunResource, projectResource } from "../../operator/src/resources.ts";
import type { Apiserver, Change } from "./apiserver.ts";
import type { ModelCatalog } from "./catalog.ts";
import { faultsOfCharge, units } from "./charge-rules.ts";
import type { ContainerObserver, ContainerRecord } from "./container.ts";
import { faultsOfDecision, type JobStatus, type SpecChange } from "./decision-rules.ts";
import { EventHistory } from "./event-history.ts";
import { LeadershipPeriods } from "./leadership-periods.ts";
import type { ModelLedger } from "./ledger.ts";
import type { StoredJob, StoredJobRun, StoredPod, StoredProject } from "./objects.ts";
import { newRunTruth, type RunTruth } from "./run-truth.ts";
import type { Timeline } from "./timeline.ts";

export interface InvariantOptions {
  limitMs: number;
  windowMs: number;
  /** Most milliseconds by which two clocks differ. */
  skewMs: number;
  /** Most milliseconds that pass between a decision and what it leads to. */
  latencyMs: number;
}

export interface Violation {
  at: number;
  project: string;
  text: string;
  history: string[];
}

/** Runs of a project that are compared with one that is admitted. */
const MAX_KEPT = 8;

interface ProjectTruth {
  readonly id: string;
  readonly changes: SpecChange[];
  readonly active: Set<ContainerRecord>;
}

export class InvariantChecker implements ContainerObserver {
  readonly violations: Violation[] = [];
  readonly history: EventHistory;
  readonly runs = new Map<string, RunTruth>();
  /** Occurrences by their outcome. */
  readonly decided: Record<string, number> = { admitted: 0 };
  /** The sum of the ledger's rows by the model, in units of `charge-rules.ts`. */
  expectedSum = 0n;
  readonly #timeline: Timeline;
  readonly #api: Apiserver;
  readonly #ledger: ModelLedger;
  readonly #catalog: ModelCatalog;
  readonly #options: InvariantOptions;
  readonly #leadership: LeadershipPeriods;
  readonly #projects = new Map<string, ProjectTruth>();
  /** The newest runs of each project. */
  readonly #byProject = new Map<string, RunTruth[]>();
  /** Runs by the uid of their pods. */
  readonly #runOfPod = new Map<string, RunTruth>();

  constructor(
    timeline: Timeline,
    api: Apiserver,
    ledger: ModelLedger,
    catalog: ModelCatalog,
    options: InvariantOptions,
  ) {
    this.#timeline = timeline;
    this.#api = api;
    this.#ledger = ledger;
    this.#catalog = catalog;
    this.#options = options;
    // Late answers, a watch that is behind, and a retry.
    this.#leadership = new LeadershipPeriods(2 * options.latencyMs);
    this.history = new EventHistory(() => timeline.now);
    ledger.onRow = (row) => this.#charged(row);
    ledger.onDifference = (row, present) =>
      this.violate(
        row.project_id,
        `a second, different charge of ${row.id}: ${text(row)} after ${text(present)}`,
      );
    api.onChange((change) => this.#observe(change));
  }

  /** Reports a violation. */
  violate(project: string, what: string): void {
    this.violations.push({ at: this.#timeline.now, project, text: what, history: this.history.of(project) });
  }

  record(project: string, what: () => string): void {
    this.history.record(project, what);
  }

  /** The operator has logged an error: the model gives it no cause for any. */
  defect(message: string, fields: object): void {
    const { key = "", err, ...rest } = fields as { key?: string; err?: unknown };
    const cause = err instanceof Error ? err.stack : JSON.stringify(err);
    this.violate(key.split("/").at(-1) ?? "", `${message}: ${JSON.stringify(rest)} ${cause}`);
  }

  /** Records an event that concerns every project. */
  recordForAll(what: string): void {
    for (const id of this.#projects.keys()) {
      this.history.record(id, () => what);
    }
  }

  /** An operator begins to lead, or the one that led stops or is frozen. */
  leadershipChanged(leads: boolean): void {
    this.#leadership.changed(leads, this.#timeline.now);
  }

  /** A run's pod is removed by force, with its finalizers: its end cannot be known for sure. */
  tampered(run: string, podUid: string): void {
    const truth = this.runs.get(run);
    if (!truth) {
      return;
    }
    truth.tampered = true;
    for (const record of truth.containers) {
      if (record.podUid === podUid) {
        record.stripped = true;
      }
    }
  }

  containerStarted(record: ContainerRecord): void {
    const { project, run } = record;
    this.record(
      project,
      () => `container of ${run} starts (${record.node} reports ${record.reportedStartedAt})`,
    );
    const truth = this.#run(run, project);
    const state = this.#projects.get(project);
    for (const other of state?.active ?? []) {
      // A pod that was removed from the apiserver by force ends when its node observes it.
      const excused = other.stripped || (other.run === run && truth.tampered);
      if (!excused) {
        this.violate(project, `two containers concurrently: ${other.pod} and ${record.pod}`);
      }
    }
    if (truth.containers.length > 0 && !truth.tampered) {
      this.violate(project, `${run} has a second container`);
    }
    truth.containers.push(record);
    this.#runOfPod.set(record.podUid, truth);
    state?.active.add(record);
    const { namespace } = record;
    if (!this.#api.get(jobRunResource, { namespace, name: run }) && !truth.tampered) {
      this.violate(project, `a container of ${run} started without a JobRun`);
    }
    const activeRun = this.#api.get<StoredProject>(projectResource, { namespace, name: project })?.status?.job
      ?.activeRun;
    if (activeRun !== run && !truth.tampered) {
      this.violate(project, `${run} started while ${activeRun} has the slot`);
    }
  }

  containerEnded(record: ContainerRecord): void {
    const how = record.lost ? "is lost" : `ends with ${record.exitCode} (${record.reportedFinishedAt})`;
    this.record(record.project, () => `container of ${record.run} ${how}`);
    this.#projects.get(record.project)?.active.delete(record);
  }

  /** Checks the state after the last event: every run charged, nothing stuck. */
  checkFinalState(): void {
    for (const truth of this.runs.values()) {
      const charged = this.#ledger.rows.has(this.#rowKey(truth));
      if (isKnown(truth) && !charged) {
        this.violate(truth.project, `${truth.name} ran and is not in the ledger`);
      }
    }
    for (const run of this.#api.list<StoredJobRun>(jobRunResource)) {
      this.violate(run.spec.projectRef.name, `JobRun ${run.metadata.name} still exists: ${text(run)}`);
    }
    for (const resource of [resources.jobs, resources.pods]) {
      for (const { metadata } of this.#api.list(resource)) {
        const project = metadata.labels?.["slipway.dev/project"] ?? "";
        const stuck = metadata.finalizers?.includes(finalizers.jobRun) === true;
        if (stuck) {
          this.violate(project, `${resource.kind} ${metadata.name} is stuck: ${text(metadata)}`);
        }
      }
    }
    for (const { metadata, status } of this.#api.list<StoredProject>(projectResource)) {
      const { activeRun } = status?.job ?? {};
      if (activeRun !== undefined) {
        this.violate(metadata.name, `the slot is stuck with ${activeRun}`);
      }
    }
    const sum = [...this.#ledger.rows.values()].reduce((total, { amount }) => total + units(amount), 0n);
    if (sum !== this.expectedSum) {
      this.violate("", `the ledger's sum is ${sum}, not ${this.expectedSum}`);
    }
  }

  #observe(change: Change): void {
    if (change.resource === projectResource) {
      this.#checkProject(change as Change<StoredProject>);
    } else if (change.resource === jobRunResource) {
      this.#checkRun(change as Change<StoredJobRun>);
    } else if (change.resource === resources.jobs) {
      this.#checkJob(change as Change<StoredJob>);
    } else if (change.resource === resources.pods) {
      this.#checkPod(change as Change<StoredPod>);
    }
  }

  #checkProject({ type, object, old }: Change<StoredProject>): void {
    const id = object.metadata.name;
    const { now } = this.#timeline;
    const truth = this.#projects.get(id) ?? { id, changes: [], active: new Set() };
    this.#projects.set(id, truth);
    if (type === "delete") {
      this.record(id, () => "project deleted");
      return;
    }
    const deleting = object.metadata.deletionTimestamp !== undefined;
    if (object.spec !== old?.spec || deleting !== (old?.metadata.deletionTimestamp !== undefined)) {
      truth.changes.push({ at: now, spec: object.spec, deleting });
      const { job, paused, plan } = object.spec;
      this.record(
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
    this.record(
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
      this.violate(id, fault);
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
    const truth = this.#run(run, project);
    const running = truth.containers.some(({ endedAt }) => endedAt === undefined);
    if (running && !truth.tampered) {
      this.violate(project, `the slot of ${run} was released while it runs`);
    }
    if (missed && isKnown(truth)) {
      this.violate(project, `${run} ran and is counted as missed`);
    }
    if (missed) {
      this.decided.admitted = (this.decided.admitted ?? 0) - 1;
    }
    if (missed || truth.trigger === "manual" || truth.containers.length > 0) {
      return;
    }
    if (!truth.cancelled) {
      this.violate(project, `${run} never ran and is not counted as missed`);
    }
  }

  /** An occurrence at whose minute another run was active is missed. */
  #checkOverlap(project: string, scheduledAt: number): void {
    const margin = 2 * this.#options.skewMs + 1_500;
    for (const truth of this.#byProject.get(project) ?? []) {
      for (const { startedAt, endedAt, lost } of truth.containers) {
        const active =
          startedAt < scheduledAt - margin && (endedAt ?? Number.POSITIVE_INFINITY) > scheduledAt + margin;
        if (active && !lost && !truth.tampered) {
          this.violate(project, `admitted ${iso(scheduledAt)}, when ${truth.name} was active`);
        }
      }
    }
  }

  #checkRun({ type, object, old }: Change<StoredJobRun>): void {
    const project = object.spec.projectRef.name;
    const { name } = object.metadata;
    const truth = this.#run(name, project);
    const { phase, chargedAt } = object.status ?? {};
    if (type === "add") {
      truth.trigger = object.spec.trigger;
      truth.scheduledAt = Date.parse(object.spec.scheduledAt);
      this.record(project, () => `JobRun ${name} created (${object.spec.trigger})`);
    }
    if (type === "update" && object.spec.cancelRequestedAt !== old?.spec.cancelRequestedAt) {
      this.record(project, () => `${name} is to be cancelled at ${object.spec.cancelRequestedAt}`);
      truth.cancelled = true;
      truth.seenBeforeCancel = old?.status?.lastObservedRunningAt;
    }
    if (object.status?.startedAt !== undefined) {
      truth.seen = true;
    }
    if (type === "update" && phase !== old?.status?.phase && phase !== undefined) {
      this.record(project, () => `${name} is ${phase} (${text(object.status)})`);
      if (truth.ended) {
        this.violate(project, `${name} changed from ${truth.ended.status?.phase} to ${phase}`);
      }
      if (phase !== "running") {
        truth.ended = object;
      }
    }
    const charged = this.#ledger.rows.has(this.#rowKey(truth));
    if (
      type === "update" &&
      chargedAt !== old?.status?.chargedAt &&
      !charged &&
      truth.containers.length > 0
    ) {
      this.violate(project, `${name} is reported as charged and is not in the ledger`);
    }
    if (type === "delete") {
      this.record(project, () => `JobRun ${name} deleted`);
      if (isKnown(truth) && !charged) {
        this.violate(project, `${name} ran and is deleted without a charge`);
      }
      truth.ended = undefined;
    }
  }

  #checkJob({ type, object, old }: Change<StoredJob>): void {
    const { name, annotations: marks = {} } = object.metadata;
    const project = object.metadata.labels?.["slipway.dev/project"] ?? "";
    const truth = this.#run(name, project);
    if (type === "add") {
      this.record(project, () => `Job ${name} created`);
    }
    if (type === "delete") {
      this.record(project, () => `Job ${name} deleted`);
    }
    const admitted = object.spec.suspend !== true && (old === undefined || old.spec.suspend === true);
    if (type === "delete" || !admitted) {
      return;
    }
    this.record(project, () => `Job ${name} admitted`);
    truth.admittedAt = this.#timeline.now;
    truth.plan = marks[annotations.plan];
    truth.price = marks[annotations.pricePerMinute];
    const { now } = this.#timeline;
    const { latencyMs, windowMs, skewMs } = this.#options;
    if (!this.#catalog.pricesWithin(truth.plan ?? "", now - latencyMs, now).includes(truth.price ?? "")) {
      this.violate(project, `${name} admitted at ${truth.price} a minute of ${truth.plan}`);
    }
    if (truth.trigger === "schedule" && now > truth.scheduledAt + windowMs + skewMs + latencyMs) {
      this.violate(project, `${name} admitted ${(now - truth.scheduledAt) / 1_000} s after its minute`);
    }
  }

  #checkPod({ type, object, old }: Change<StoredPod>): void {
    const truth = this.#runOfPod.get(object.metadata.uid);
    const project = object.metadata.labels?.["slipway.dev/project"] ?? "";
    if (type === "add") {
      this.record(project, () => `Pod ${object.metadata.name} created`);
    }
    if (type === "update" && object.metadata.deletionTimestamp !== old?.metadata.deletionTimestamp) {
      this.record(project, () => `Pod ${object.metadata.name} is being deleted`);
    }
    if (!truth) {
      return;
    }
    // What ran on a node that is deleted, and when it ended, stays unknown.
    if (object.status.conditions?.some(({ reason }) => reason === "DeletionByPodGC")) {
      truth.tampered = true;
    }
    if (type === "delete") {
      this.record(project, () => `Pod ${object.metadata.name} deleted`);
      this.#runOfPod.delete(object.metadata.uid);
    }
    for (const { state } of object.status.containerStatuses ?? []) {
      this.#checkStart(truth, (state.running ?? state.terminated)?.startedAt);
      const finishedAt = state.terminated?.finishedAt;
      if (finishedAt && !truth.reportedEnds.has(finishedAt)) {
        truth.reportedEnds.add(finishedAt);
        this.record(project, () => `Pod ${object.metadata.name} reports its end at ${finishedAt}`);
      }
    }
    const had = old?.metadata.finalizers?.includes(finalizers.jobRun) === true;
    const has = object.metadata.finalizers?.includes(finalizers.jobRun) === true;
    const charged = this.#ledger.rows.has(this.#rowKey(truth));
    if (had && !has && !charged && !truth.tampered && isKnown(truth)) {
      this.violate(project, `the finalizer of ${object.metadata.name} was removed before the charge`);
    }
  }

  /** A reported start counts for as long as the pod reports it; afterwards only if a leader observed it before. */
  #checkStart(truth: RunTruth, startedAt: string | null | undefined): void {
    const { now } = this.#timeline;
    if (truth.containers.some(({ reportedStartedAt }) => reportedStartedAt === startedAt)) {
      truth.startReportedAt ??= now;
      truth.isStartReported = true;
    } else if (truth.isStartReported && truth.startReportedAt !== undefined) {
      truth.isStartReported = this.#leadership.noticed(truth.startReportedAt, now);
    }
  }

  #charged(row: ChargedRun): void {
    const truth = this.runs.get(row.id);
    this.record(row.project_id, () => `ledger: ${text(row)}`);
    if (!truth) {
      this.violate(row.project_id, `charged ${row.id}, which never existed`);
      return;
    }
    const faults = faultsOfCharge(row, truth, this.#options);
    for (const fault of faults) {
      this.violate(row.project_id, `${row.id}: ${fault}`);
    }
    this.expectedSum += units(truth.price ?? "0") * BigInt(row.billed_minutes);
  }

  #rowKey(truth: RunTruth): string {
    return `${this.organization}/${truth.name}`;
  }

  /** The one organization of the model. */
  organization = "sim";

  #run(name: string, project: string): RunTruth {
    const known = this.runs.get(name);
    if (known) {
      return known;
    }
    const minute = Number(name.slice(project.length + 1).split("-")[0]);
    const truth = newRunTruth(name, project, minute * 60_000);
    this.runs.set(name, truth);
    const newest = this.#byProject.get(project) ?? [];
    newest.push(truth);
    if (newest.length > MAX_KEPT) {
      newest.shift();
    }
    this.#byProject.set(project, newest);
    return truth;
  }
}

/**
 * Whether the operator knows that a run had a container: it has observed it, or nothing kept it from observing it. It cannot know of
 * one that started on a node that was lost before it reported the start; nor of one whose start was reported while nobody led,
 * for a node that comes back reports a container that it has lost without its times.
 */
function isKnown({ containers, tampered, seen, isStartReported }: RunTruth): boolean {
  if (seen) {
    return true;
  }
  return !tampered && (isStartReported ? containers.length > 0 : containers.some(({ lost }) => !lost));
}

const iso = (at: number) => new Date(at).toISOString();
const text = (value: unknown) => JSON.stringify(value);
