/** Observes every committed change and every container, and reports violations of the invariants of runs. */

import { resources } from "@slipway/controller-runtime";
import { finalizers } from "@slipway/crds";
import type { ChargedRun } from "../../operator/src/jobs/runs/ports.ts";
import { jobRunResource, projectResource } from "../../operator/src/resources.ts";
import type { Apiserver, Change } from "./apiserver.ts";
import type { ModelCatalog } from "./catalog.ts";
import { faultsOfCharge, units } from "./charge-rules.ts";
import type { ContainerObserver, ContainerRecord } from "./container.ts";
import { LeadershipPeriods } from "./leadership-periods.ts";
import type { ModelLedger } from "./ledger.ts";
import type { StoredJob, StoredJobRun, StoredPod, StoredProject } from "./objects.ts";
import { ProjectChecks } from "./project-checks.ts";
import { RunChecks } from "./run-checks.ts";
import { isStartKnown, type RunTruth } from "./run-truth.ts";
import type { Timeline } from "./timeline.ts";
import { Truths } from "./truths.ts";
import { type Violation, ViolationLog } from "./violation-log.ts";

export interface InvariantOptions {
  limitMs: number;
  windowMs: number;
  /** Most milliseconds by which two clocks differ. */
  skewMs: number;
  /** Most milliseconds that pass between a decision and what it leads to. */
  latencyMs: number;
}

export class InvariantChecker implements ContainerObserver {
  /** The sum of the ledger's rows by the model, in units of `charge-rules.ts`. */
  expectedSum = 0n;
  readonly #timeline: Timeline;
  readonly #api: Apiserver;
  readonly #ledger: ModelLedger;
  readonly #options: InvariantOptions;
  readonly #leadership: LeadershipPeriods;
  readonly #truths = new Truths();
  readonly #log: ViolationLog;
  readonly #projectChecks: ProjectChecks;
  readonly #runChecks: RunChecks;

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
    this.#options = options;
    // Late answers, a watch that is behind, and a retry.
    this.#leadership = new LeadershipPeriods(2 * options.latencyMs);
    this.#log = new ViolationLog(timeline);
    this.#projectChecks = new ProjectChecks(timeline, this.#truths, this.#log, options);
    const parts = {
      timeline,
      ledger,
      catalog,
      leadership: this.#leadership,
      truths: this.#truths,
      log: this.#log,
    };
    this.#runChecks = new RunChecks(parts, options);
    ledger.onRow = (row) => this.#charged(row);
    ledger.onDifference = (row, present) =>
      this.#log.violate(
        row.project_id,
        `a second, different charge of ${row.id}: ${text(row)} after ${text(present)}`,
      );
    api.onChange((change) => this.#observe(change));
  }

  get violations(): readonly Violation[] {
    return this.#log.violations;
  }

  get runs(): ReadonlyMap<string, RunTruth> {
    return this.#truths.runs;
  }

  /** Occurrences by their outcome. */
  get decided(): Readonly<Record<string, number>> {
    return this.#projectChecks.decided;
  }

  /** Records an event of a project. */
  record(project: string, what: () => string): void {
    this.#log.record(project, what);
  }

  /** The operator has logged an error: the model gives it no cause for any. */
  defect(message: string, fields: object): void {
    const { key = "", err, ...rest } = fields as { key?: string; err?: unknown };
    const cause = err instanceof Error ? err.stack : JSON.stringify(err);
    this.#log.violate(key.split("/").at(-1) ?? "", `${message}: ${JSON.stringify(rest)} ${cause}`);
  }

  /** Records an event that concerns every project. */
  recordForAll(what: string): void {
    for (const id of this.#truths.projects.keys()) {
      this.#log.record(id, () => what);
    }
  }

  /** An operator begins to lead, or the one that led stops or is frozen. */
  leadershipChanged(leads: boolean): void {
    this.#leadership.changed(leads, this.#timeline.now);
  }

  /** A run's pod is removed by force, with its finalizers: its end cannot be known for sure. */
  tampered(run: string, podUid: string): void {
    const truth = this.#truths.runs.get(run);
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
    this.#log.record(
      project,
      () => `container of ${run} starts (${record.node} reports ${record.reportedStartedAt})`,
    );
    const truth = this.#truths.run(run, project);
    const state = this.#truths.projects.get(project);
    for (const other of state?.active ?? []) {
      // A pod that was removed from the apiserver by force ends when its node observes it.
      const excused = other.stripped || (other.run === run && truth.tampered);
      if (!excused) {
        this.#log.violate(project, `two containers concurrently: ${other.pod} and ${record.pod}`);
      }
    }
    if (truth.containers.length > 0 && !truth.tampered) {
      this.#log.violate(project, `${run} has a second container`);
    }
    truth.containers.push(record);
    this.#truths.byPod.set(record.podUid, truth);
    state?.active.add(record);
    const { namespace } = record;
    if (!this.#api.get(jobRunResource, { namespace, name: run }) && !truth.tampered) {
      this.#log.violate(project, `a container of ${run} started without a JobRun`);
    }
    const activeRun = this.#api.get<StoredProject>(projectResource, { namespace, name: project })?.status?.job
      ?.activeRun;
    if (activeRun !== run && !truth.tampered) {
      this.#log.violate(project, `${run} started while ${activeRun} has the slot`);
    }
  }

  containerEnded(record: ContainerRecord): void {
    const how = record.lost ? "is lost" : `ends with ${record.exitCode} (${record.reportedFinishedAt})`;
    this.#log.record(record.project, () => `container of ${record.run} ${how}`);
    this.#truths.projects.get(record.project)?.active.delete(record);
  }

  /** Checks the state after the last event: every run charged, nothing stuck. */
  checkFinalState(): void {
    for (const truth of this.#truths.runs.values()) {
      const charged = this.#ledger.has(truth.name);
      if (isStartKnown(truth) && !charged) {
        this.#log.violate(truth.project, `${truth.name} ran and is not in the ledger`);
      }
    }
    for (const run of this.#api.list<StoredJobRun>(jobRunResource)) {
      this.#log.violate(run.spec.projectRef.name, `JobRun ${run.metadata.name} still exists: ${text(run)}`);
    }
    for (const resource of [resources.jobs, resources.pods]) {
      for (const { metadata } of this.#api.list(resource)) {
        const project = metadata.labels?.["slipway.dev/project"] ?? "";
        const stuck = metadata.finalizers?.includes(finalizers.jobRun) === true;
        if (stuck) {
          this.#log.violate(project, `${resource.kind} ${metadata.name} is stuck: ${text(metadata)}`);
        }
      }
    }
    for (const { metadata, status } of this.#api.list<StoredProject>(projectResource)) {
      const { activeRun } = status?.job ?? {};
      if (activeRun !== undefined) {
        this.#log.violate(metadata.name, `the slot is stuck with ${activeRun}`);
      }
    }
    const sum = [...this.#ledger.rows.values()].reduce((total, { amount }) => total + units(amount), 0n);
    if (sum !== this.expectedSum) {
      this.#log.violate("", `the ledger's sum is ${sum}, not ${this.expectedSum}`);
    }
  }

  #observe(change: Change): void {
    if (change.resource === projectResource) {
      this.#projectChecks.check(change as Change<StoredProject>);
    } else if (change.resource === jobRunResource) {
      this.#runChecks.checkRun(change as Change<StoredJobRun>);
    } else if (change.resource === resources.jobs) {
      this.#runChecks.checkJob(change as Change<StoredJob>);
    } else if (change.resource === resources.pods) {
      this.#runChecks.checkPod(change as Change<StoredPod>);
    }
  }

  #charged(row: ChargedRun): void {
    const truth = this.#truths.runs.get(row.id);
    this.#log.record(row.project_id, () => `ledger: ${text(row)}`);
    if (!truth) {
      this.#log.violate(row.project_id, `charged ${row.id}, which never existed`);
      return;
    }
    const faults = faultsOfCharge(row, truth, this.#options);
    for (const fault of faults) {
      this.#log.violate(row.project_id, `${row.id}: ${fault}`);
    }
    this.expectedSum += units(truth.price ?? "0") * BigInt(row.billed_minutes);
  }
}

const text = (value: unknown) => JSON.stringify(value);
