/** Adjusts what is recorded of a project to changes that came after charges of their time: docs/billing.md#late-changes. */

import { type PriceList, planAdjustments, planCharges } from "@slipway/crds";
import { type AdjustedProject, isRefusedRow } from "@slipway/ledger";
import type { Logger } from "@slipway/process";
import type { PlanChargeLedger, PlanChargeOutcome } from "./plan-charge-ledger.ts";

export interface LateProject {
  project: Omit<AdjustedProject, "charges">;
  lists: readonly PriceList[];
}

/**
 * Records the differences. Where charges were recorded or changes came meanwhile none are: they are computed again in the next round.
 * @throws what the ledger throws
 */
export async function adjustCharges(
  { project, lists }: LateProject,
  {
    ledger,
    log,
    onOutcome,
  }: {
    ledger: Pick<PlanChargeLedger, "histories" | "recorded" | "adjust">;
    log: Logger;
    onOutcome?: ((outcome: PlanChargeOutcome, charges: number) => void) | undefined;
  },
): Promise<void> {
  const { projectUid, projectId, late } = project;
  const until = project.until.getTime();
  const [history] = await ledger.histories([projectUid]);
  if (history === undefined) {
    return;
  }
  const wanted = planCharges(history, lists, { hoursSince: late.from.getTime(), until });
  const final = wanted.filter(({ finalAt }) => finalAt < until);
  const charges = planAdjustments(final, await ledger.recorded(projectUid, late.from), late.pass);
  try {
    const adjusted = await ledger.adjust({ ...project, charges });
    if (adjusted !== undefined) {
      onOutcome?.("adjusted", adjusted);
      log.warn(
        { project: projectId, projectUid, from: late.from, charges: adjusted },
        "charges are adjusted to a change that came late",
      );
    }
  } catch (error) {
    if (!isRefusedRow(error)) {
      throw error;
    }
    onOutcome?.("refused", charges.length);
    log.error({ err: error, project: projectId, projectUid }, "adjustments of a plan are refused");
  }
}
