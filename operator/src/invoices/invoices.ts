/** Adds the issue of invoices to a manager, where it is turned on. */

import type { Manager } from "@slipway/controller-runtime";
import {
  beginInvoicing,
  completeInvoiceCycle,
  connectLedger,
  cyclesToInvoice,
  type InvoiceTerms,
  isLockTimeout,
  isStatementError,
  issueInvoice,
  type Ledger,
  nextInvoicesDue,
  organizationsToInvoice,
} from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { Counter, Gauge } from "prom-client";
import { FailedOrganizations } from "./failed-organizations.ts";

/** The ledger's invoices. Each call may throw when the ledger is unavailable, and may be repeated. */
export interface InvoiceLedger {
  /** Notes from which cycle on there are invoices. */
  begin(): Promise<void>;
  /** When the invoices are due of the oldest cycle that has not all of them. */
  due(): Promise<Date | undefined>;
  /** Cycles whose invoices are to be issued, the oldest first. */
  cycles(): Promise<readonly string[]>;
  /** Organizations that have a charge for a cycle's invoices, and no invoice of it. */
  organizations(cycle: string): Promise<readonly string[]>;
  /** @returns its number; undefined where there is none to issue */
  issue(organizationId: string, cycle: string): Promise<string | undefined>;
  /** Notes that all are issued. */
  complete(cycle: string): Promise<void>;
}

const STATEMENT_TIMEOUT_MS = 300_000;

/** A connection for invoices alone, whose statements may take minutes. It is made when the first one is due. */
export const connectInvoiceLedger = (url: string, log: Logger): Ledger =>
  connectLedger({
    url,
    applicationName: "slipway-invoices",
    maxConnections: 1,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    onIdleError: (error) => log.warn({ err: error }, "idle ledger connection lost"),
  });

/** Invoices in the PostgreSQL ledger. */
export const ledgerInvoices = (ledger: Ledger, terms: InvoiceTerms): InvoiceLedger => ({
  begin: () => beginInvoicing(ledger),
  due: () => nextInvoicesDue(ledger),
  cycles: () => cyclesToInvoice(ledger),
  organizations: (cycle) => organizationsToInvoice(ledger, cycle),
  issue: (organizationId, cycle) => issueInvoice(ledger, { organizationId, cycle }, terms),
  complete: (cycle) => completeInvoiceCycle(ledger, cycle),
});

export type InvoiceResult = "issued" | "failed";

interface Options {
  ledger: InvoiceLedger;
  /** One that throws while it may not be acted on. */
  clock: Clock;
  log: Logger;
  onOutcome?: (outcome: InvoiceResult) => void;
  onDue?: (due: Date | undefined) => void;
}

const PERIOD_MS = 3_600_000;
const RETRY_MS = 60_000;

/** The first shard issues for all. */
export function addInvoices(manager: Manager, ledger: InvoiceLedger): void {
  const { trustedClock: clock, log, registry } = manager;
  const invoices = new Counter({
    name: "slipway_invoices_total",
    help: "Invoices by outcome: issued, or failed and tried again.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of ["issued", "failed"]) {
    invoices.inc({ outcome }, 0);
  }
  const oldest = new Gauge({
    name: "slipway_invoices_due_timestamp_seconds",
    help: "When the invoices are due of the oldest month that has not all of them. 0 where this process issues none.",
    registers: [registry],
  });
  const onOutcome = (outcome: InvoiceResult) => invoices.inc({ outcome });
  const onDue = (due: Date | undefined) => oldest.set((due?.getTime() ?? 0) / 1_000);
  manager.addRunnable({
    name: "invoices",
    run: async (signal) => {
      await runInvoices({ ledger, clock, log, onOutcome, onDue }, signal);
      onDue(undefined);
    },
  });
}

/**
 * Issues what is due, at start and hourly, until the signal aborts. A pass that fails is tried again in a minute, and an organization that fails less
 * and less often: there is no pass before the first one's next attempt.
 */
export async function runInvoices(options: Options, signal: AbortSignal): Promise<void> {
  const { clock, log, ledger, onDue } = options;
  const failures = new FailedOrganizations(clock);
  let hasBegun = false;
  while (!signal.aborted) {
    let pauseMs = RETRY_MS;
    try {
      clock.now();
      if (!hasBegun) {
        await ledger.begin();
        hasBegun = true;
      }
      onDue?.(await ledger.due());
      await issueDue(options, signal, failures);
      pauseMs = Math.min(PERIOD_MS, failures.nextAttemptMs() ?? PERIOD_MS);
      onDue?.(await ledger.due());
    } catch (error) {
      if (!signal.aborted) {
        log.warn({ err: error }, "invoices could not be issued");
      }
    }
    await sleep(clock, pauseMs, signal);
  }
}

/**
 * Issues all invoices of cycles that are due, of one organization after the other. An organization whose invoice fails delays no other, and
 * has no invoice of a later cycle before: each carries over from the one before.
 * @returns whether none failed
 * @throws when the ledger is away, another process issues, or this one may no longer: what was being issued is issued then, or nothing of it
 */
export async function issueDue(
  { ledger, clock, log, onOutcome }: Options,
  signal: AbortSignal,
  failures = new FailedOrganizations(clock),
): Promise<boolean> {
  const failed = new Set<string>();
  for (const cycle of await ledger.cycles()) {
    const due = await ledger.organizations(cycle);
    let issued = 0;
    for (const organization of due.filter((id) => !failed.has(id))) {
      signal.throwIfAborted();
      clock.now();
      if (failures.isWaiting(organization)) {
        failed.add(organization);
        continue;
      }
      try {
        if ((await untilAborted(ledger.issue(organization, cycle), signal)) !== undefined) {
          issued += 1;
          onOutcome?.("issued");
        }
        failures.succeeded(organization);
      } catch (error) {
        await throwIfOfAll(error, ledger, signal);
        failed.add(organization);
        failures.failed(organization);
        onOutcome?.("failed");
        log.error({ err: error, organization, cycle }, "an invoice could not be issued");
      }
    }
    const isComplete = due.every((id) => !failed.has(id));
    if (isComplete) {
      await ledger.complete(cycle);
    }
    if (issued > 0 || isComplete) {
      log.info({ cycle, issued, isComplete }, "invoices issued");
    }
  }
  failures.keepOnly(failed);
  return failed.size === 0;
}

/** @throws where it is not this organization's invoice that failed: another process has the lock, the ledger does not answer, or this one ends */
async function throwIfOfAll(error: unknown, ledger: InvoiceLedger, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (isLockTimeout(error)) {
    throw error;
  }
  if (!isStatementError(error)) {
    // Throws where the ledger is away.
    await ledger.due();
  }
}

/** Resolves as the promise does, unless the signal aborts before. The work is not cancelled: a transaction that is left commits whole, or not. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) {
    abort();
  }
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
