/** Adds the runnables that charge by time to a manager: the storage meter and the settlement of cycles. */

import type { Manager, Store } from "@slipway/controller-runtime";
import type { Catalog, Project } from "@slipway/crds";
import {
  type Ledger,
  lastStorageHour,
  newestSettleableCycle,
  recordStorageCharges,
  settleCycle,
} from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { Counter } from "prom-client";
import { type StorageLedger, StorageMeter } from "./storage-meter.ts";

/** Ledger operations of billing. */
export interface BillingLedger extends StorageLedger {
  settle: SettleCycle;
}

/** Billing on the PostgreSQL ledger. */
export const ledgerBilling = (ledger: Ledger): BillingLedger => ({
  record: (rows) => recordStorageCharges(ledger, rows),
  last: (key) => lastStorageHour(ledger, key),
  settle: (cycleStart) => settleCycle(ledger, cycleStart),
});

/** Each shard charges its own projects, and deletions wait for that; the first one settles for all. */
export function addBilling(
  manager: Manager,
  options: { ledger: BillingLedger; projects: Store<Project>; catalog: () => Pick<Catalog, "storagePlans"> },
): StorageMeter {
  const { trustedClock: clock, log, registry } = manager;
  const { ledger, projects, catalog } = options;
  const hours = new Counter({
    name: "slipway_storage_hours_total",
    help: "Hours of persistent storage by outcome: charged, found charged otherwise, or refused by the ledger.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of ["recorded", "differs", "refused"]) {
    hours.inc({ outcome }, 0);
  }
  const meter = new StorageMeter({
    ledger,
    projects,
    owns: (namespace) => manager.owns(namespace),
    catalog,
    clock,
    log,
    onRecorded: (outcome, count) => hours.inc({ outcome }, count),
  });
  manager.addRunnable({ name: "storage-meter", everyShard: true, run: (signal) => meter.run(signal) });
  manager.addRunnable({
    name: "settlement",
    run: (signal) => runSettlement({ settle: ledger.settle, clock, log }, signal),
  });
  return meter;
}

/** Settles billing cycles, at start and hourly: whole cents are charged, the fraction is carried. */

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
