/** From the end of a run to its charge in the ledger, and to the word that it stands there. */

import { type JobRun, organizationOfNamespace } from "@slipway/crds";
import type { JobRunDependencies } from "./context.ts";
import type { RunObjects } from "./objects.ts";
import type { ChargedRun, EndPhase } from "./ports.ts";
import type { RunContext } from "./progress.ts";
import { projectUidOf } from "./run.ts";
import { LOOK_AGAIN_MS } from "./settings.ts";
import { charged, chargeRefused } from "./status.ts";
import { toCapture } from "./to-capture.ts";

export class Settlement {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;

  constructor(deps: JobRunDependencies, objects: RunObjects) {
    this.#deps = deps;
    this.#objects = objects;
  }

  /**
   * Has an ended run's log kept and its charge recorded, neither of which is waited for: their ends wake the key.
   * @param key of the run's project
   * @param waits whether the word that both are done may come later
   */
  async bring(key: string, run: JobRun, waits: boolean, { signal, wake }: RunContext): Promise<void> {
    const { charger, clock, metrics } = this.#deps;
    const row = rowOf(run);
    const { uid } = run.metadata;
    if (!row || !uid) {
      return;
    }
    const charge = charger.charge(key, uid, row);
    if (charge === "full") {
      wake.in(LOOK_AGAIN_MS);
      return;
    }
    const logs = run.status?.logs ?? this.#capture(key, uid, run, charge !== undefined);
    const refusal = charger.refusal(uid);
    if (refusal !== undefined) {
      await this.#objects.writeStatus(run, chargeRefused(run, refusal, clock.now()), signal);
    }
    if (!charge || !logs || waits) {
      return;
    }
    const differs = charge.outcome === "differs";
    await this.#objects.writeStatus(run, charged(run, { differs, logs }, clock.now()), signal);
    if (differs) {
      metrics.differs.inc();
    }
    metrics.billingLag.observe(Math.max(charge.at.getTime() - row.finished_at.getTime(), 0) / 1_000);
  }

  #capture(key: string, uid: string, run: JobRun, charged: boolean) {
    const { podName } = run.status ?? {};
    // It had no pod any more when it was looked for.
    const log = podName === undefined ? undefined : toCapture(run, podName);
    return log ? this.#deps.capturer.capture(key, uid, log, charged) : "unavailable";
  }
}

/** The charge of an ended run, from its status alone; undefined when the status does not tell one. */
export function rowOf({ metadata, spec, status }: JobRun): ChargedRun | undefined {
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
    metrics: status?.metrics ?? null,
  };
}
