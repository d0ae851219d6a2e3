/** Notifies of unpaid invoices, and blocks organizations for overdue ones, where it is turned on. */

import type { Manager } from "@slipway/controller-runtime";
import {
  type Ledger,
  listOverdueOrganizations,
  listUnpaidOrganizations,
  type OverdueTerms,
  type RecordedOverdue,
  recordOverdue,
} from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { Attempts, eachPage, type OrganizationPage } from "../organization-rounds.ts";
import { createOverdueMetrics } from "./metrics.ts";

/** What it needs of the ledger. Each call throws while that is unavailable. */
export interface OverdueLedger {
  /** Organizations of a page that have unpaid invoices; fewer than its limit on the last one. */
  list(page: OrganizationPage): Promise<string[]>;
  /** Of some organizations, those with an invoice of which something is to be recorded. */
  due(organizationIds: readonly string[], now: Date): Promise<string[]>;
  /** Records what is due of an organization's invoices, each once and with its event. */
  record(organizationId: string, now: Date): Promise<RecordedOverdue>;
}

/** The real one. */
export const overdueLedger = (ledger: Ledger, terms: OverdueTerms): OverdueLedger => ({
  list: (page) => listUnpaidOrganizations(ledger, page),
  due: (organizationIds, now) => listOverdueOrganizations(ledger, organizationIds, terms, now),
  record: (organizationId, now) => recordOverdue(ledger, organizationId, terms, now),
});

/** Between two rounds: notices are days ahead. */
const PERIOD_MS = 600_000;
/** After one that was not complete. */
const RETRY_MS = 60_000;

/** The first shard works for all. */
export function addOverdue(manager: Manager, ledger: OverdueLedger): void {
  const { clock, log, trustedClock } = manager;
  let completedAt: number | undefined;
  const age = () => (completedAt === undefined ? 0 : (clock.monotonic() - completedAt) / 1_000);
  const metrics = createOverdueMetrics(manager.registry, age);
  const options = {
    ...{ ledger, trustedClock, clock, log },
    onRecorded: ({ notices, blocks }: RecordedOverdue) => {
      metrics.steps.inc({ step: "notice" }, notices);
      metrics.steps.inc({ step: "block" }, blocks);
    },
    onFailure: () => metrics.failures.inc(),
  };
  manager.addRunnable({
    name: "overdue-invoices",
    run: async (signal) => {
      completedAt = clock.monotonic();
      while (!signal.aborted) {
        let pauseMs = RETRY_MS;
        try {
          if (await recordOverdueInvoices(options, signal)) {
            completedAt = clock.monotonic();
            pauseMs = PERIOD_MS;
          }
        } catch (error) {
          if (!signal.aborted) {
            metrics.failures.inc();
            log.warn({ err: error }, "unpaid invoices could not be read");
          }
        }
        await sleep(clock, pauseMs, signal);
      }
      completedAt = undefined;
    },
  });
}

export interface OverdueOptions {
  ledger: OverdueLedger;
  /** One that throws while it may not be acted on. */
  trustedClock: Clock;
  clock: Clock;
  log: Logger;
  onRecorded: (recorded: RecordedOverdue) => void;
  onFailure: () => void;
}

/**
 * One round. An organization that cannot be recorded, or a page that cannot be read, keeps no other back.
 * @returns whether all were read and recorded
 * @throws what the ledger throws while it is unavailable
 */
export async function recordOverdueInvoices(
  { ledger, trustedClock, clock, log, onRecorded, onFailure }: OverdueOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const attempts = new Attempts((err, of) => {
    onFailure();
    log.warn({ err, ...of }, "notices or blocks of unpaid invoices could not be recorded");
  });
  await eachPage(
    (page) => ledger.list(page),
    async (ids) => {
      const read = () => ledger.due(ids, trustedClock.now());
      for (const organization of (await attempts.run(read, { first: ids[0], last: ids.at(-1) })) ?? []) {
        if (signal.aborted) {
          return;
        }
        const recorded = await attempts.run(() => ledger.record(organization, trustedClock.now()), {
          organization,
        });
        if (recorded) {
          onRecorded(recorded);
        }
        if (recorded && recorded.blocks > 0) {
          log.info({ organization }, "an organization is blocked for an overdue invoice");
        }
      }
    },
    { clock, signal },
  );
  return attempts.areComplete && !signal.aborted;
}
