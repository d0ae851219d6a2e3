/** The status of a run in each phase. Pure. */

import { ConditionSet } from "@slipway/controller-runtime";
import type { JobRun, JobRunConditionCatalog, JobRunReason, JobRunStatus } from "@slipway/crds";
import type { RunPod } from "./cluster.ts";
import { type Completion, cancelEffectiveAt, chargeOf } from "./completion.ts";
import type { EndPhase, RunMetrics } from "./ports.ts";

/** Plan and price that a run is admitted with. */
export interface Pricing {
  admittedAt?: Date;
  plan: string;
  pricePerMinute: string;
}

/** The observation of a run that has not ended. */
export interface Observation {
  pricing: Pricing;
  jobUid?: string;
  pod?: RunPod;
  /** When its container started; absent before. */
  startedAt?: Date;
  /** When the container was last observed running. */
  seenAt?: Date;
  /** Whether the pod's node is not ready. */
  nodeSilent: boolean;
  /** Whether it has reached its time limit. */
  overLimit: boolean;
  metrics?: RunMetrics;
}

const endReasons: Record<EndPhase, JobRunReason> = {
  succeeded: "Succeeded",
  failed: "Failed",
  deadline_exceeded: "DeadlineExceeded",
  cancelled: "Cancelled",
};

/** A one-off run that is admitted: from then on this Job may start, and no other. */
export function oneOffAdmitted(
  run: JobRun,
  seen: { pricing: Pricing; jobUid: string; deployment: string; image: JobRunStatus["image"] },
  now: Date,
): JobRunStatus {
  const { pricing, ...recorded } = seen;
  const conditions = conditionsOf(run, now);
  conditions.set({ type: "Admitted", status: "True", reason: "Admitted" });
  return { ...run.status, ...common(run, conditions), ...pricingStatus(pricing), ...recorded };
}

/** An admitted run that has not ended. */
export function observed(run: JobRun, seen: Observation, now: Date): JobRunStatus {
  const conditions = conditionsOf(run, now);
  const cancelledAt = cancelEffectiveAt(run, now);
  conditions.set({ type: "Admitted", status: "True", reason: "Admitted" });
  setStopping(conditions, run, seen);
  if (seen.nodeSilent) {
    const message = "The node of the run does not answer: the end of its process could not be confirmed.";
    conditions.set({ type: "CancelUnsafe", status: "True", reason: "NodeUnreachable", message });
  } else {
    conditions.remove("CancelUnsafe");
  }
  return {
    ...run.status,
    ...common(run, conditions),
    ...pricingStatus(seen.pricing),
    jobUid: run.status?.jobUid ?? seen.jobUid,
    ...podOf(run, seen.pod),
    ...(seen.startedAt ? { phase: "running" as const, startedAt: seen.startedAt.toISOString() } : {}),
    ...(cancelledAt ? { cancelEffectiveAt: cancelledAt.toISOString() } : {}),
    ...(seen.seenAt ? { lastObservedRunningAt: seen.seenAt.toISOString() } : {}),
    ...(seen.metrics ? { metrics: seen.metrics } : {}),
  };
}

/** A run whose container has ended: its charge is computed from this. */
export function ended(
  run: JobRun,
  end: Completion,
  seen: { pricing: Pricing; jobUid?: string; pod?: RunPod; metrics: RunMetrics },
  now: Date,
): JobRunStatus {
  const conditions = conditionsOf(run, now);
  conditions.set({ type: "Admitted", status: "True", reason: "Admitted" });
  conditions.set({ type: "Finished", status: "True", reason: endReasons[end.phase] });
  conditions.set({ type: "Charged", status: "False", reason: "ChargePending" });
  conditions.remove("Cancelling");
  conditions.remove("CancelUnsafe");
  return {
    ...run.status,
    ...common(run, conditions),
    ...pricingStatus(seen.pricing),
    jobUid: run.status?.jobUid ?? seen.jobUid,
    ...podOf(run, seen.pod),
    phase: end.phase,
    startedAt: end.startedAt.toISOString(),
    finishedAt: end.finishedAt.toISOString(),
    billedUntil: end.billedUntil.toISOString(),
    ...chargeOf(end, seen.pricing.pricePerMinute),
    ...(end.exitCode === undefined ? {} : { exitCode: end.exitCode }),
    ...(end.reason === undefined ? {} : { endReason: end.reason }),
    metrics: seen.metrics,
  };
}

/** A run whose container never ran, and never will: no usage. */
export function neverStarted(run: JobRun, now: Date): JobRunStatus {
  const cancelled = run.spec.cancelRequestedAt !== undefined;
  const conditions = conditionsOf(run, now);
  const reason = cancelled ? "Cancelled" : "NeverStarted";
  conditions.set({ type: "Finished", status: "False", reason, message: "Its container never started." });
  conditions.set({ type: "Charged", status: "True", reason: "NothingToCharge" });
  conditions.remove("Cancelling");
  conditions.remove("CancelUnsafe");
  return { ...run.status, ...common(run, conditions), phase: cancelled ? "cancelled" : undefined };
}

/** A run that is never admitted. */
export function refused(run: JobRun, reason: JobRunReason, message: string, now: Date): JobRunStatus {
  const conditions = conditionsOf(run, now);
  conditions.set({ type: "Admitted", status: "False", reason, message });
  conditions.remove("Cancelling");
  return { ...run.status, ...common(run, conditions) };
}

/** A run whose charge was read back. */
export function charged(
  run: JobRun,
  charge: { differs: boolean; logs: "stored" | "unavailable" },
  now: Date,
): JobRunStatus {
  const conditions = conditionsOf(run, now);
  conditions.set({
    type: "Charged",
    status: "True",
    ...(charge.differs
      ? { reason: "ChargeDiffers", message: "The ledger has it with other billing fields, which stand." }
      : { reason: "ChargeRecorded" }),
  });
  return { ...run.status, ...common(run, conditions), chargedAt: now.toISOString(), logs: charge.logs };
}

/** A run whose charge breaks a rule of the ledger: it stays uncharged until an operator intervenes. */
export function chargeRefused(run: JobRun, rule: string, now: Date): JobRunStatus {
  const conditions = conditionsOf(run, now);
  const message = `The ledger refuses its charge (${rule.slice(0, 200)}); it is asked again every minute.`;
  conditions.set({ type: "Charged", status: "False", reason: "ChargeRefused", message });
  return { ...run.status, ...common(run, conditions) };
}

/** The first reason to stop stays: a run that was stopped at its limit is not failed. */
function setStopping(conditions: ConditionSet<JobRunConditionCatalog>, run: JobRun, seen: Observation): void {
  if (conditions.get("Cancelling")?.reason === "DeadlineExceeded") {
    return;
  }
  const cancelled = run.spec.cancelRequestedAt !== undefined;
  if (seen.overLimit) {
    const message = "The run has reached its time limit and is being stopped.";
    conditions.set({ type: "Cancelling", status: "True", reason: "DeadlineExceeded", message });
  } else if (cancelled) {
    conditions.set({ type: "Cancelling", status: "True", reason: "CancelRequested" });
  }
}

function conditionsOf({ metadata, status }: JobRun, now: Date): ConditionSet<JobRunConditionCatalog> {
  return new ConditionSet<JobRunConditionCatalog>(status?.conditions ?? [], {
    now,
    generation: metadata.generation,
  });
}

function common({ metadata }: JobRun, conditions: ConditionSet<JobRunConditionCatalog>): JobRunStatus {
  return { observedGeneration: metadata.generation, conditions: conditions.list() };
}

function pricingStatus({ admittedAt, plan, pricePerMinute }: Pricing): JobRunStatus {
  return { ...(admittedAt ? { admittedAt: admittedAt.toISOString() } : {}), plan, pricePerMinute };
}

function podOf({ status }: JobRun, pod: RunPod | undefined): JobRunStatus {
  if (!pod || (status?.podUid !== undefined && status.podUid !== pod.metadata.uid)) {
    return {};
  }
  const { nodeName } = pod.spec ?? {};
  return {
    podName: pod.metadata.name,
    podUid: pod.metadata.uid,
    ...(nodeName ? { nodeName } : {}),
  };
}
