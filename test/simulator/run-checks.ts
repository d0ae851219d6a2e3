/** Whether each committed change of a JobRun, a Job or a pod agrees with the containers of its run and with the ledger. */

import { annotations, finalizers } from "@slipway/crds";
import type { Change } from "./apiserver.ts";
import type { ModelCatalog } from "./catalog.ts";
import type { LeadershipPeriods } from "./leadership-periods.ts";
import type { ModelLedger } from "./ledger.ts";
import type { StoredJob, StoredJobRun, StoredPod } from "./objects.ts";
import { isStartKnown, type RunTruth } from "./run-truth.ts";
import type { Timeline } from "./timeline.ts";
import type { Truths } from "./truths.ts";
import type { ViolationLog } from "./violation-log.ts";

export interface RunCheckOptions {
  windowMs: number;
  /** Most milliseconds by which two clocks differ. */
  skewMs: number;
  /** Most milliseconds that pass between a decision and what it leads to. */
  latencyMs: number;
}

export interface RunCheckParts {
  timeline: Timeline;
  ledger: ModelLedger;
  catalog: ModelCatalog;
  leadership: LeadershipPeriods;
  truths: Truths;
  log: ViolationLog;
}

export class RunChecks {
  readonly #timeline: Timeline;
  readonly #ledger: ModelLedger;
  readonly #catalog: ModelCatalog;
  readonly #leadership: LeadershipPeriods;
  readonly #truths: Truths;
  readonly #log: ViolationLog;
  readonly #options: RunCheckOptions;

  constructor(parts: RunCheckParts, options: RunCheckOptions) {
    this.#timeline = parts.timeline;
    this.#ledger = parts.ledger;
    this.#catalog = parts.catalog;
    this.#leadership = parts.leadership;
    this.#truths = parts.truths;
    this.#log = parts.log;
    this.#options = options;
  }

  checkRun({ type, object, old }: Change<StoredJobRun>): void {
    const project = object.spec.projectRef.name;
    const { name } = object.metadata;
    const truth = this.#truths.run(name, project);
    const { phase, chargedAt } = object.status ?? {};
    if (type === "add") {
      truth.trigger = object.spec.trigger;
      truth.scheduledAt = Date.parse(object.spec.scheduledAt);
      this.#log.record(project, () => `JobRun ${name} created (${object.spec.trigger})`);
    }
    if (type === "update" && object.spec.cancelRequestedAt !== old?.spec.cancelRequestedAt) {
      this.#log.record(project, () => `${name} is to be cancelled at ${object.spec.cancelRequestedAt}`);
      truth.cancelled = true;
      truth.seenBeforeCancel = old?.status?.lastObservedRunningAt;
    }
    if (object.status?.startedAt !== undefined) {
      truth.seen = true;
    }
    if (type === "update" && phase !== old?.status?.phase && phase !== undefined) {
      this.#log.record(project, () => `${name} is ${phase} (${text(object.status)})`);
      if (truth.ended) {
        this.#log.violate(project, `${name} changed from ${truth.ended.status?.phase} to ${phase}`);
      }
      if (phase !== "running") {
        truth.ended = object;
      }
    }
    const charged = this.#ledger.has(truth.name);
    if (
      type === "update" &&
      chargedAt !== old?.status?.chargedAt &&
      !charged &&
      truth.containers.length > 0
    ) {
      this.#log.violate(project, `${name} is reported as charged and is not in the ledger`);
    }
    if (type === "delete") {
      this.#log.record(project, () => `JobRun ${name} deleted`);
      if (isStartKnown(truth) && !charged) {
        this.#log.violate(project, `${name} ran and is deleted without a charge`);
      }
      truth.ended = undefined;
    }
  }

  checkJob({ type, object, old }: Change<StoredJob>): void {
    const { name, annotations: marks = {} } = object.metadata;
    const project = object.metadata.labels?.["slipway.dev/project"] ?? "";
    const truth = this.#truths.run(name, project);
    if (type === "add") {
      this.#log.record(project, () => `Job ${name} created`);
    }
    if (type === "delete") {
      this.#log.record(project, () => `Job ${name} deleted`);
    }
    const admitted = object.spec.suspend !== true && (old === undefined || old.spec.suspend === true);
    if (type === "delete" || !admitted) {
      return;
    }
    this.#log.record(project, () => `Job ${name} admitted`);
    truth.admittedAt = this.#timeline.now;
    truth.plan = marks[annotations.plan];
    truth.price = marks[annotations.pricePerMinute];
    const { now } = this.#timeline;
    const { latencyMs, windowMs, skewMs } = this.#options;
    if (!this.#catalog.pricesWithin(truth.plan ?? "", now - latencyMs, now).includes(truth.price ?? "")) {
      this.#log.violate(project, `${name} admitted at ${truth.price} a minute of ${truth.plan}`);
    }
    if (truth.trigger === "schedule" && now > truth.scheduledAt + windowMs + skewMs + latencyMs) {
      this.#log.violate(project, `${name} admitted ${(now - truth.scheduledAt) / 1_000} s after its minute`);
    }
  }

  checkPod({ type, object, old }: Change<StoredPod>): void {
    const truth = this.#truths.byPod.get(object.metadata.uid);
    const project = object.metadata.labels?.["slipway.dev/project"] ?? "";
    if (type === "add") {
      this.#log.record(project, () => `Pod ${object.metadata.name} created`);
    }
    if (type === "update" && object.metadata.deletionTimestamp !== old?.metadata.deletionTimestamp) {
      this.#log.record(project, () => `Pod ${object.metadata.name} is being deleted`);
    }
    if (!truth) {
      return;
    }
    // What ran on a node that is deleted, and when it ended, stays unknown.
    if (object.status.conditions?.some(({ reason }) => reason === "DeletionByPodGC")) {
      truth.tampered = true;
    }
    if (type === "delete") {
      this.#log.record(project, () => `Pod ${object.metadata.name} deleted`);
      this.#truths.byPod.delete(object.metadata.uid);
    }
    for (const { state } of object.status.containerStatuses ?? []) {
      this.#checkStart(truth, (state.running ?? state.terminated)?.startedAt);
      const finishedAt = state.terminated?.finishedAt;
      if (finishedAt && !truth.reportedEnds.has(finishedAt)) {
        truth.reportedEnds.add(finishedAt);
        this.#log.record(project, () => `Pod ${object.metadata.name} reports its end at ${finishedAt}`);
      }
    }
    const had = old?.metadata.finalizers?.includes(finalizers.jobRun) === true;
    const has = object.metadata.finalizers?.includes(finalizers.jobRun) === true;
    const charged = this.#ledger.has(truth.name);
    if (had && !has && !charged && !truth.tampered && isStartKnown(truth)) {
      this.#log.violate(project, `the finalizer of ${object.metadata.name} was removed before the charge`);
    }
  }

  /** A reported start counts for as long as the pod reports it; afterwards only if a leader observed it before. */
  #checkStart(truth: RunTruth, startedAt: string | null | undefined): void {
    const { now } = this.#timeline;
    if (truth.containers.some(({ reportedStartedAt }) => reportedStartedAt === startedAt)) {
      truth.startReportedAt ??= now;
      truth.isStartReported = true;
    } else if (truth.isStartReported && truth.startReportedAt !== undefined) {
      truth.isStartReported = this.#leadership.observed(truth.startReportedAt, now);
    }
  }
}

const text = (value: unknown) => JSON.stringify(value);
