/** Charges what projects use beside their plans, from facts in the ledger: docs/billing.md. */

import type { ChargedResources } from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import type { PlanChargeOutcome } from "./plan-charge-ledger.ts";

/** The ledger's charges of resources. Each call may throw when the ledger is unavailable. */
export interface ResourceLedger {
  /** Charges some of the builds that ended. */
  chargeBuilds(): Promise<ChargedResources>;
}

export interface ResourceMeterOptions {
  ledger: ResourceLedger;
  clock: Clock;
  log: Logger;
  onOutcome?: (outcome: PlanChargeOutcome, charges: number) => void;
}

const PERIOD_MS = 60_000;
/** The least time between two transactions that write, in milliseconds. */
const PACE_MS = 1_000;

/**
 * Charges what is final until the signal aborts, what an outage delayed, too. What there is to charge is in the ledger, and so is the time: a second
 * process, and one that starts again, charge what is left.
 */
export async function runResourceMeter(
  { ledger, clock, log, onOutcome }: ResourceMeterOptions,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    let isMore = false;
    try {
      const charged = await ledger.chargeBuilds();
      isMore = charged.isMore;
      if (charged.recorded > 0) {
        onOutcome?.("recorded", charged.recorded);
      }
      if (charged.differing.length > 0) {
        onOutcome?.("differs", charged.differing.length);
        log.error(
          { keys: charged.differing.slice(0, 10) },
          "builds are charged otherwise than they should be",
        );
      }
      if (charged.refused.length > 0) {
        onOutcome?.("refused", charged.refused.length);
      }
      for (const build of charged.refused) {
        log.error(build, "the ledger refuses the charge of a build, which is tried again after a day");
      }
    } catch (error) {
      if (!signal.aborted) {
        log.warn({ err: error }, "resources could not be charged");
      }
    }
    await sleep(clock, isMore ? PACE_MS : PERIOD_MS, signal);
  }
}
