/** Settles billing cycles, at start and hourly: whole cents are charged, the fraction is carried. */

import { newestSettleableCycle } from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";

/** Settles a cycle and all before it; returns how many settlements that made. Throws when the ledger is unavailable. */
export type SettleCycle = (cycleStart: Date) => Promise<number>;

const PERIOD_MS = 3_600_000;
const RETRY_MS = 60_000;

/**
 * Runs until the signal aborts. The ledger settles in order and only once, so that starting again, or a second leader,
 * changes nothing. A charge that arrives later than two hours after its cycle is part of the next settlement.
 */
export async function runSettlement(
  { settle, clock, log }: { settle: SettleCycle; clock: Clock; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  /** The newest cycle settled by this process, which is not requested again. */
  let settled: number | undefined;
  while (!signal.aborted) {
    let pause = PERIOD_MS;
    let cycle: Date | undefined;
    try {
      cycle = newestSettleableCycle(clock.now());
      if (cycle.getTime() !== settled) {
        const made = await settle(cycle);
        settled = cycle.getTime();
        log.info({ cycle, made }, "billing cycle settled");
      }
    } catch (error) {
      pause = RETRY_MS;
      if (!signal.aborted) {
        log.warn({ err: error, cycle }, "billing cycle could not be settled");
      }
    }
    await sleep(clock, pause, signal);
  }
}
