/** Adjusts what is recorded of a project to changes that came after charges of their time: docs/billing.md#late-changes. */

import { checkpointOf, type PriceList, planAdjustments, planCharges } from "@slipway/crds";
import { type AdjustedProject, isDeadlock, isRefusedRow, isTooSlow } from "@slipway/ledger";
import type { Logger } from "@slipway/process";
import type { PlanChargeLedger, PlanChargeOutcome } from "./plan-charge-ledger.ts";
import type { SlowProjects } from "./slow-projects.ts";

export interface LateProject {
  project: Omit<AdjustedProject, "ended" | "charges" | "checkpoint">;
  lists: readonly PriceList[];
}

interface Options {
  ledger: Pick<PlanChargeLedger, "histories" | "recorded" | "adjust">;
  slow: SlowProjects;
  log: Logger;
  onOutcome?: ((outcome: PlanChargeOutcome, charges: number) => void) | undefined;
}

/**
 * Records the differences. Where charges were recorded or changes came meanwhile, or another process charged the organization on the same days in
 * another order, none are: they are computed again in the next round. One that fails keeps back no other project.
 * @returns false where the ledger refuses them or takes too long
 * @throws what the ledger throws otherwise, as while it is away
 */
export async function adjustCharges(late: LateProject, options: Options): Promise<boolean> {
  const { log, slow, onOutcome } = options;
  const { projectUid, projectId } = late.project;
  try {
    await adjust(late, options);
    slow.succeeded(projectUid);
    return true;
  } catch (error) {
    if (isDeadlock(error)) {
      log.warn({ err: error, project: projectId, projectUid }, "an adjustment is computed again");
      return true;
    }
    if (!(isRefusedRow(error) || isTooSlow(error) || error instanceof RangeError)) {
      throw error;
    }
    const isCounted = !isTooSlow(error) || slow.failed(projectUid);
    if (isCounted) {
      onOutcome?.("refused", 1);
    }
    log[isCounted ? "error" : "warn"](
      { err: error, project: projectId, projectUid },
      "a plan cannot be adjusted to a late change",
    );
    return false;
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
  // All of the history is known here: without these, each window would read it from its beginning.
  const ended = history.deletedAt !== undefined && history.deletedAt < until;
  const checkpoint = ended ? undefined : checkpointOf(history, lists, until);
  const adjusted = await ledger.adjust({ ...project, ended, charges, checkpoint });
  if (adjusted !== undefined) {
    onOutcome?.("adjusted", adjusted);
    log.warn(
      { project: projectId, projectUid, from: late.from, charges: adjusted },
      "charges are adjusted to a change that came late",
    );
  }
}
