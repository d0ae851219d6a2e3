/** Adds the runnables that charge by time to a manager: the storage meter and the settlement of cycles. */

import type { Manager, Store } from "@slipway/controller-runtime";
import type { Catalog, Project } from "@slipway/crds";
import { type Ledger, lastStorageHour, recordStorageCharges, settleCycle } from "@slipway/ledger";
import { Counter } from "prom-client";
import { runSettlement, type SettleCycle } from "./settlement.ts";
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

/** Both run on the leader alone. Deletions wait for the meter. */
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
    catalog,
    clock,
    log,
    onRecorded: (outcome, count) => hours.inc({ outcome }, count),
  });
  manager.addRunnable({ name: "storage-meter", run: (signal) => meter.run(signal) });
  manager.addRunnable({
    name: "settlement",
    run: (signal) => runSettlement({ settle: ledger.settle, clock, log }, signal),
  });
  return meter;
}
