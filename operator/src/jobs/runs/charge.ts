/** Charges ended runs: from the end of a run to its condition `Charged`. */

import { isOneOff, type JobRun, organizationOfNamespace } from "@slipway/crds";
import type { JobRunDependencies, RunContext } from "./context.ts";
import { logSourceOf } from "./log-archiver.ts";
import type { RunObjects } from "./objects.ts";
import type { ChargedRun, EndPhase } from "./ports.ts";
import { projectUidOf } from "./run.ts";
import { POLL_INTERVAL_MS } from "./settings.ts";
import { charged, chargeRefused } from "./status.ts";

export class ChargeStep {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;

  constructor(deps: JobRunDependencies, objects: RunObjects) {
    this.#deps = deps;
    this.#objects = objects;
  }

  /**
   * Starts to archive an ended run's log and to record its charge, and waits for neither: both enqueue the key when done.
   * @param key of the run's project
   * @param deferred whether the status is written later
   */
  async reconcile(
    key: string,
    run: JobRun,
    deferred: boolean,
    { signal, requeue }: RunContext,
  ): Promise<void> {
    const { chargeRecorder, clock, metrics } = this.#deps;
    const row = chargeRow(run);
    const { uid } = run.metadata;
    if (!row || !uid) {
      return;
    }
    const charge = chargeRecorder.record(key, uid, row);
    if (charge === "full") {
      requeue.after(POLL_INTERVAL_MS);
      return;
    }
    const logs = run.status?.logs ?? this.#archive(key, uid, run, charge !== undefined);
    const refusal = chargeRecorder.refusal(uid);
    if (refusal !== undefined) {
      await this.#objects.writeStatus(run, chargeRefused(run, refusal, clock.now()), signal);
    }
    if (!charge || !logs || deferred) {
      return;
    }
    const differs = charge.outcome === "differs";
    await this.#objects.writeStatus(run, charged(run, { differs, logs }, clock.now()), signal);
    if (differs) {
      metrics.differs.inc();
    }
    metrics.billingLag.observe(Math.max(charge.at.getTime() - row.finished_at.getTime(), 0) / 1_000);
  }

  #archive(key: string, uid: string, run: JobRun, charged: boolean) {
    const { podName } = run.status ?? {};
    // Its pod did not exist any more.
    const log = podName === undefined ? undefined : logSourceOf(run, podName);
    return log ? this.#deps.logArchiver.archive(key, uid, log, charged) : "unavailable";
  }
}

/** The JobRun of a one-off run is deleted some time, and its exit code is to be known for as long as the run is. */
function keptMetrics({ spec, status }: Pick<JobRun, "spec" | "status">): ChargedRun["metrics"] {
  const { metrics, exitCode } = status ?? {};
  return metrics && isOneOff({ spec }) && exitCode !== undefined
    ? { ...metrics, exitCode }
    : (metrics ?? null);
}

/** The charge of an ended run, from its status alone; undefined when the status has none. */
export function chargeRow({ metadata, spec, status }: JobRun): ChargedRun | undefined {
  const organizationId = organizationOfNamespace(metadata.namespace ?? "");
  const { phase, startedAt, finishedAt, billedUntil, billedMinutes, amount, plan, pricePerMinute } =
    status ?? {};
  if (organizationId === undefined || phase === undefined || phase === "running") {
    return undefined;
  }
  if (!startedAt || !finishedAt || !billedUntil || billedMinutes === undefined) {
    return undefined;
  }
  if (amount === undefined || plan === undefined || pricePerMinute === undefined) {
    return undefined;
  }
  return {
    organization_id: organizationId,
    project_id: spec.projectRef.name,
    project_uid: projectUidOf({ metadata, spec } as JobRun) ?? "",
    id: metadata.name,
    trigger: spec.trigger,
    scheduled_at: new Date(spec.scheduledAt),
    started_at: new Date(startedAt),
    finished_at: new Date(finishedAt),
    billed_until: new Date(billedUntil),
    status: phase satisfies EndPhase,
    billed_minutes: billedMinutes,
    plan,
    price_per_minute: pricePerMinute,
    amount,
    metrics: keptMetrics({ spec, status }),
  };
}
