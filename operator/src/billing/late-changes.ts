/** Adjusts what is recorded of a project to changes that came after charges of their time: docs/billing.md#late-changes. */

import { type PriceList, planAdjustments, planCharges } from "@slipway/crds";
import { type AdjustedProject, isRefusedRow } from "@slipway/ledger";
import type { Logger } from "@slipway/process";
import type { PlanChargeLedger, PlanChargeOutcome } from "./plan-charge-ledger.ts";

export interface LateProject {
  project: Omit<AdjustedProject, "charges">;
  lists: readonly PriceList[];
}

interface Options {
  ledger: Pick<PlanChargeLedger, "histories" | "recorded" | "adjust">;
  log: Logger;
  onOutcome?: ((outcome: PlanChargeOutcome, charges: number) => void) | undefined;
}

/**
 * Records the differences. Where charges were recorded or changes came meanwhile none are; and where the ledger is away, or takes too long: they are
 * computed again in the next round. One project keeps back no other.
 */
export async function adjustCharges(late: LateProject, options: Options): Promise<void> {
  const { log, onOutcome } = options;
  const { projectUid, projectId } = late.project;
  try {
    await adjust(late, options);
  } catch (error) {
    const facts = { err: error, project: projectId, projectUid };
    if (isRefusedRow(error) || error instanceof RangeError) {
      onOutcome?.("refused", 1);
      log.error(facts, "adjustments of a plan are refused");
    } else {
      log.warn(facts, "charges could not be adjusted to a change that came late");
    }
  }
}

async function adjust({ project, lists }: LateProject, { ledger, log, onOutcome }: Options): Promise<void> {
  const { projectUid, projectId, late } = project;
  const until = project.until.getTime();
  const [history] = await ledger.histories([projectUid]);
  if (history === undefined) {
    return;
  }
  const wanted = planCharges(history, lists, { hoursSince: late.from.getTime(), until });
  const final = wanted.filter(({ finalAt }) => finalAt < until);
  const charges = planAdjustments(final, await ledger.recorded(projectUid, late.from), late.pass);
  const adjusted = await ledger.adjust({ ...project, charges });
  if (adjusted !== undefined) {
    onOutcome?.("adjusted", adjusted);
    log.warn(
      { project: projectId, projectUid, from: late.from, charges: adjusted },
      "charges are adjusted to a change that came late",
    );
  }
}
