/** Adds the metering of plans to a manager, where it is turned on. */

import type { Manager, Store } from "@slipway/controller-runtime";
import { type Catalog, type Project, priceListOf } from "@slipway/crds";
import {
  billableHistories,
  chargeBuilds,
  type Ledger,
  lastBillableChanges,
  listPrices,
  meteredHistories,
  openBillableProjects,
  projectsToMeter,
  recordBillableChanges,
  recordedPlanCharges,
  recordPlanAdjustments,
  recordPlanCharges,
  recordPrices,
} from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { Counter } from "prom-client";
import { type ChangeOutcome, ChangeRecorder } from "./change-recorder.ts";
import { type OpenHistories, runEndedProjects } from "./ended-projects.ts";
import type { PlanChargeLedger, PlanChargeOutcome } from "./plan-charge-ledger.ts";
import { PlanMeter } from "./plan-meter.ts";
import { type ResourceLedger, runResourceMeter } from "./resource-meter.ts";

/** Ledger operations of metering. */
export interface MeteringLedger {
  changes: OpenHistories;
  charges: PlanChargeLedger;
  resources: ResourceLedger;
}

/** Metering on the PostgreSQL ledger. */
export const ledgerMetering = (ledger: Ledger): MeteringLedger => ({
  changes: {
    record: (changes) => recordBillableChanges(ledger, changes),
    last: (projectUids) => lastBillableChanges(ledger, projectUids),
    open: () => openBillableProjects(ledger),
  },
  charges: {
    toMeter: () => projectsToMeter(ledger),
    histories: (projectUids) => billableHistories(ledger, projectUids),
    recent: (projectUids, most) => meteredHistories(ledger, projectUids, most),
    prices: () => listPrices(ledger),
    recordPrices: (list) => recordPrices(ledger, list),
    record: (windows) => recordPlanCharges(ledger, windows),
    recorded: (projectUid, hoursSince) => recordedPlanCharges(ledger, projectUid, hoursSince),
    adjust: (project) => recordPlanAdjustments(ledger, project),
  },
  resources: { chargeBuilds: () => chargeBuilds(ledger) },
});

const CHANGE_OUTCOMES: readonly ChangeOutcome[] = [
  "recorded",
  "late",
  "already",
  "differs",
  "renumbered",
  "ahead",
  "refused",
  "ended",
];
const CHARGE_OUTCOMES: readonly PlanChargeOutcome[] = ["recorded", "adjusted", "differs", "refused"];
/** Between two comparisons of the catalog with the prices in the ledger, in milliseconds. */
const PRICES_PERIOD_MS = 60_000;

export interface MeteringOptions {
  ledger: MeteringLedger;
  projects: Store<Project>;
  catalog: () => Catalog;
  /** False: only ends of histories that have begun are recorded. */
  isOn: boolean;
}

/** Each shard records the changes and the charges of its own projects, and their deletions wait for the changes. The first one records prices, and charges what projects use beside their plans. */
export function addMetering(
  manager: Manager,
  { ledger, projects, catalog, isOn }: MeteringOptions,
): ChangeRecorder {
  const { client, trustedClock: clock, log, registry } = manager;
  const changes = new Counter({
    name: "slipway_billable_changes_total",
    help: "Changes of what is billed by outcome: recorded, recorded after charges of its time, found in the ledger, found otherwise, renumbered since a status had lost its list, ahead of the ledger's time, refused by it, or after an end that it has.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of CHANGE_OUTCOMES) {
    changes.inc({ outcome }, 0);
  }
  const charges = new Counter({
    name: "slipway_plan_charges_total",
    help: "Charges of plans, and of what projects use beside them, by outcome: recorded, recorded as the difference that a late change makes, found otherwise in the ledger, or refused.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of CHARGE_OUTCOMES) {
    charges.inc({ outcome }, 0);
  }
  const owns = (namespace: string | undefined) => manager.owns(namespace);
  const recorder = new ChangeRecorder({
    ledger: ledger.changes,
    projects,
    endsOnly: !isOn,
    owns,
    clock,
    log,
    onOutcome: (outcome, count) => changes.inc({ outcome }, count),
  });
  manager.addRunnable({
    name: "billable-changes",
    everyShard: true,
    run: (signal) => recorder.run(signal),
  });
  if (!isOn) {
    return recorder;
  }
  manager.addRunnable({
    name: "ended-projects",
    everyShard: true,
    run: (signal) => runEndedProjects({ ledger: ledger.changes, client, projects, owns, clock, log }, signal),
  });
  const meter = new PlanMeter({
    ledger: ledger.charges,
    projects,
    recorder,
    owns,
    clock,
    log,
    onOutcome: (outcome, count) => charges.inc({ outcome }, count),
  });
  manager.addRunnable({ name: "plan-meter", everyShard: true, run: (signal) => meter.run(signal) });
  manager.addRunnable({
    name: "resource-meter",
    run: (signal) =>
      runResourceMeter(
        {
          ledger: ledger.resources,
          clock,
          log,
          onOutcome: (outcome, count) => charges.inc({ outcome }, count),
        },
        signal,
      ),
  });
  manager.addRunnable({
    name: "prices",
    run: (signal) => runPrices({ ledger: ledger.charges, catalog, clock, log }, signal),
  });
  return recorder;
}

/** Records the catalog's prices from when it is known with them, until the signal aborts. */
export async function runPrices(
  {
    ledger,
    catalog,
    clock,
    log,
  }: { ledger: Pick<PlanChargeLedger, "recordPrices">; catalog: () => Catalog; clock: Clock; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  let recorded: Catalog | undefined;
  while (!signal.aborted) {
    const current = catalog();
    if (current !== recorded) {
      try {
        const isNew = await ledger.recordPrices(priceListOf(current, clock.now().getTime()));
        recorded = current;
        log.info({ isNew }, "prices are in the ledger");
      } catch (error) {
        if (!signal.aborted) {
          log.warn({ err: error }, "prices could not be recorded");
        }
      }
    }
    await sleep(clock, PRICES_PERIOD_MS, signal);
  }
}
