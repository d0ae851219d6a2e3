/** Adds the metering of plans to a manager, where it is turned on. */

import type { Manager, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import {
  type Ledger,
  lastBillableChanges,
  openBillableProjects,
  recordBillableChanges,
} from "@slipway/ledger";
import { Counter } from "prom-client";
import { type ChangeOutcome, ChangeRecorder } from "./change-recorder.ts";
import { type OpenHistories, runEndedProjects } from "./ended-projects.ts";

/** Ledger operations of metering. */
export interface MeteringLedger {
  changes: OpenHistories;
}

/** Metering on the PostgreSQL ledger. */
export const ledgerMetering = (ledger: Ledger): MeteringLedger => ({
  changes: {
    record: (changes) => recordBillableChanges(ledger, changes),
    last: (projectUids) => lastBillableChanges(ledger, projectUids),
    open: () => openBillableProjects(ledger),
  },
});

const OUTCOMES: readonly ChangeOutcome[] = ["recorded", "already", "differs", "ahead", "refused"];

/** Each shard records the changes of its own projects, and their deletions wait for that. */
export function addMetering(
  manager: Manager,
  { ledger, projects }: { ledger: MeteringLedger; projects: Store<Project> },
): ChangeRecorder {
  const { client, trustedClock: clock, log, registry } = manager;
  const changes = new Counter({
    name: "slipway_billable_changes_total",
    help: "Changes of what is billed by outcome: recorded, found in the ledger, found otherwise, ahead of the ledger's time, or refused by it.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of OUTCOMES) {
    changes.inc({ outcome }, 0);
  }
  const owns = (namespace: string | undefined) => manager.owns(namespace);
  const recorder = new ChangeRecorder({
    ledger: ledger.changes,
    projects,
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
  manager.addRunnable({
    name: "ended-projects",
    everyShard: true,
    run: (signal) => runEndedProjects({ ledger: ledger.changes, client, projects, owns, clock, log }, signal),
  });
  return recorder;
}
