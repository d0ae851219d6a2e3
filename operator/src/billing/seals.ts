/** Adds the sealing of what money follows from to a manager: docs/billing-audit.md#seals. */

import type { Manager } from "@slipway/controller-runtime";
import {
  type BillingSeal,
  connectLedger,
  isTooSlow,
  type Ledger,
  lastSeal,
  type SealedUntil,
  sealBilling,
} from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { Counter, Gauge } from "prom-client";

/** The ledger's seals. Each call may throw when the ledger is unavailable, and may be repeated. */
export interface SealLedger {
  /** The last seal; undefined where nothing is sealed. */
  last(): Promise<BillingSeal | undefined>;
  /** Seals the oldest rows that no seal has, of so much time at most. */
  seal(longestMs: number): Promise<SealedUntil>;
}

const STATEMENT_TIMEOUT_MS = 300_000;

/** A connection for seals alone: of what was recorded before there were any, a day's rows take long. */
export const connectSealLedger = (url: string, log: Logger): Ledger =>
  connectLedger({
    url,
    applicationName: "slipway-seals",
    maxConnections: 1,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    onIdleError: (error) => log.warn({ err: error }, "idle ledger connection lost"),
  });

/** Seals in the PostgreSQL ledger. */
export const ledgerSeals = (ledger: Ledger): SealLedger => ({
  last: () => lastSeal(ledger),
  seal: (longestMs) => sealBilling(ledger, { longestMs }),
});

interface Options {
  ledger: SealLedger;
  clock: Clock;
  log: Logger;
  onSealed?: () => void;
  onUntil?: (until: Date | undefined) => void;
}

const PERIOD_MS = 3_600_000;
const RETRY_MS = 60_000;
/** The longest time of one seal, and what it is halved to where the ledger takes too long for it. */
const LONGEST_MS = 86_400_000;
const SHORTEST_MS = 3_600_000;
/** Between two transactions, where there is more to seal. */
const PACE_MS = 1_000;

/** The leader of the first shard seals for all. */
export function addSeals(manager: Manager, ledger: SealLedger): void {
  const { clock, log, registry } = manager;
  const seals = new Counter({
    name: "slipway_billing_seals_total",
    help: "Seals that this process has made of rows that money follows from.",
    registers: [registry],
  });
  const until = new Gauge({
    name: "slipway_billing_sealed_timestamp_seconds",
    help: "Until when all that money follows from is sealed, or when this process began to where nothing is. 0 where it does not seal.",
    registers: [registry],
  });
  manager.addRunnable({
    name: "billing-seals",
    run: async (signal) => {
      const onUntil = (at: Date | undefined) => until.set((at?.getTime() ?? 0) / 1_000);
      // So that one that never succeeds is noticed. What the ledger has sealed is from before this process, and so is how long nothing was.
      onUntil(clock.now());
      await runSeals({ ledger, clock, log, onSealed: () => seals.inc(), onUntil }, signal);
      onUntil(undefined);
    },
  });
}

/**
 * Seals at start and hourly, until the signal aborts, and each minute while that fails: of half the time where the ledger takes too long, down to an hour. The hash of each seal is in the log, or that of one after it: kept outside of the platform it
 * proves all that was sealed by then.
 */
export async function runSeals(
  { ledger, clock, log, onSealed, onUntil }: Options,
  signal: AbortSignal,
): Promise<void> {
  let isKnown = false;
  let logged: number | undefined;
  let longestMs = LONGEST_MS;
  while (!signal.aborted) {
    let pauseMs = RETRY_MS;
    try {
      if (!isKnown) {
        const before = await ledger.last();
        isKnown = true;
        if (before) {
          onUntil?.(before.to);
        }
        // One that was made is not in the log where its answer was lost, or its process ended.
        if (before && before.number !== logged) {
          log.info(before, "billing sealed before");
          logged = before.number;
        }
      }
      const { seal, until, isMore } = await ledger.seal(longestMs);
      if (seal) {
        const { number, hash, rows, to } = seal;
        onSealed?.();
        log.info({ number, hash, rows, to }, "billing sealed");
        logged = number;
      }
      if (until) {
        onUntil?.(until);
        pauseMs = isMore ? PACE_MS : PERIOD_MS;
        longestMs = isMore ? longestMs : LONGEST_MS;
      }
    } catch (error) {
      isKnown = false;
      if (isTooSlow(error)) {
        longestMs = Math.max(longestMs / 2, SHORTEST_MS);
      }
      if (!signal.aborted) {
        log.warn({ err: error, longestMs }, "billing could not be sealed");
      }
    }
    await sleep(clock, pauseMs, signal);
  }
}
