import { billingCycle, type PriceList } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import { listPrices } from "../plan-charges.ts";
import { RETIRED_AFTER_DAYS } from "../retention.ts";
import { type Check, retirement, runCharges, runCheck, settlements, storageCharges, sums } from "./checks.ts";
import { firstCycle } from "./dates.ts";
import { type BillingFinding, BillingFindings } from "./findings.ts";
import { chargesOnInvoices, invoicedCharges, lines, numbers, payments, totals } from "./invoice-checks.ts";
import { refuseLocked, withAuditLock, withinTime } from "./lock.ts";
import { auditPart } from "./parts.ts";
import { auditPlanCharges } from "./plan-charges.ts";
import { auditBuilds, quantityCharges } from "./resource-charges.ts";
import { dayOf, nextCycle, scopeOf, spansOf } from "./scope.ts";
import { type AuditedSeals, auditSeals } from "./seals.ts";
import { auditTaxes } from "./taxes.ts";

/** Proves what was charged from what was recorded: docs/billing-audit.md. */

export interface BillingAuditOptions {
  /** All organizations unless given. */
  organizationId?: string | undefined;
  /** The first cycle is the one that it lies in; the first one with anything unless given. */
  from?: Date | undefined;
  /** The last cycle is the one that it lies in; the current one unless given. */
  to?: Date | undefined;
  /** The hash of a seal that was kept elsewhere, in hexadecimal. */
  head?: string | undefined;
  /** How long it may take, in milliseconds; without a limit unless given. */
  timeoutMs?: number | undefined;
  onProgress?: ((line: string) => void) | undefined;
}

export interface BillingAudit {
  organizations: number;
  /** Charges of plans that were compared. */
  planCharges: number;
  invoices: number;
  /** Projects that wait for their adjustment, those that are overdue too. */
  pendingAdjustments: number;
  seals: AuditedSeals;
  findings: BillingFindings;
}

/** Time of one statement, and how long the snapshot is kept while nothing is asked. */
const LIMITS = [
  sql`set local statement_timeout = '10min'`,
  sql`set local idle_in_transaction_session_timeout = '10min'`,
];

/** About how many charges of an organization a statement reads: those of whole cycles. */
const CHARGES = 200_000;

const checks: Readonly<Record<string, Check>> = {
  ...{ quantityCharges, runCharges, storageCharges, sums, settlements },
  ...{ chargesOnInvoices, invoicedCharges, lines, totals, payments },
};

/** What retention drops parts of: before the snapshot, so that it has all that there is. */
const KEPT = sql`lock table charges, job_runs in access share mode`;

/**
 * Audits as of one moment. It reads a few projects, or a statement's result, at a time.
 * @param ledger a connection whose answers may take ten minutes
 * @throws AuditRunningError while another process audits, or has locked what is read
 * @throws AuditTimeoutError when it takes longer than it may
 * @throws when the database is away
 */
export function auditBilling(ledger: Ledger, options: BillingAuditOptions = {}): Promise<BillingAudit> {
  const { timeoutMs } = options;
  return withAuditLock(ledger, (connection) => {
    const audit = () =>
      connection
        .transaction()
        .setIsolationLevel("repeatable read")
        .setAccessMode("read only")
        .execute(async (transaction) => {
          for (const limit of LIMITS) {
            await limit.execute(transaction);
          }
          await refuseLocked(() => KEPT.execute(transaction));
          return auditSnapshot(transaction, options);
        });
    return timeoutMs === undefined ? audit() : withinTime(ledger, { connection, timeoutMs }, audit);
  });
}

/** @internal Audits what a transaction sees. */
export async function auditSnapshot(
  ledger: Ledger,
  { organizationId, from, to, head, onProgress }: BillingAuditOptions = {},
): Promise<BillingAudit> {
  const findings = new BillingFindings();
  const { report } = findings;
  // Hashes, and keys of findings, are of times as text.
  await sql`set local timezone = 'UTC'`.execute(ledger);
  const begin = from && dayOf(billingCycle(from).startedAt);
  const seals = await auditSeals(ledger, { organizationId, from: begin, head }, report);
  onProgress?.(`${seals.seals} seals, ${findings.total} findings`);
  const counts = { organizations: 0, planCharges: 0, invoices: 0, pendingAdjustments: 0 };
  const result: BillingAudit = { ...counts, seals, findings };
  let lists: PriceList[] = [];
  await auditPart(ledger, { key: "price_lists" }, report, async () => {
    lists = await listPrices(ledger);
  });
  await auditPart(ledger, { key: "plan_meters" }, report, async () => {
    result.pendingAdjustments = await countPending(ledger, organizationId);
  });
  const organizations =
    organizationId === undefined ? await billedOrganizations(ledger, report) : [organizationId];
  const now = await ledgerNow(ledger);
  const end = nextCycle(dayOf(to !== undefined && to < now ? to : now));
  for (const id of organizations) {
    await auditPart(ledger, { organizationId: id, key: "organization" }, report, () =>
      auditOrganization(ledger, { organizationId: id, begin, end, now, lists, result }),
    );
    result.organizations += 1;
    onProgress?.(`${result.organizations} of ${organizations.length}: ${id}, ${findings.total} findings`);
  }
  for (const [key, check] of Object.entries({ numbers, retirement: retirement(RETIRED_AFTER_DAYS) })) {
    await auditPart(ledger, { key }, report, () => runCheck(ledger, check, report));
  }
  return result;
}

interface Organization {
  organizationId: string;
  /** First day of the first cycle that is wanted; all that there are unless given. */
  begin: string | undefined;
  /** First day after the last one. */
  end: string;
  now: Date;
  lists: readonly PriceList[];
  result: BillingAudit;
}

async function auditOrganization(
  ledger: Ledger,
  { organizationId, begin, end, now, lists, result }: Organization,
): Promise<void> {
  const { report } = result.findings;
  const timeouts = { count: 0 };
  const part = (key: string, work: () => Promise<void>) =>
    auditPart(ledger, { organizationId, key, timeouts }, report, work);
  let first = begin ?? end;
  await part("dates", async () => {
    first = (await firstCycle(ledger, { organizationId, now }, report)) ?? end;
  });
  const from = begin !== undefined && begin > first ? begin : first;
  const scope = scopeOf(organizationId, { from, to: end, now, timeouts });
  await part("plan_charges", async () => {
    result.planCharges += await auditPlanCharges(ledger, scope, lists, report);
  });
  let charges = new Map<string, number>();
  await part("usage_by_project", async () => {
    charges = await chargesByCycle(ledger, organizationId);
  });
  for (const span of spansOf(scope.cycles, charges, CHARGES)) {
    for (const [key, check] of Object.entries(checks)) {
      const name = `${key} from ${span.from} to ${span.to}`;
      await part(name, () => runCheck(ledger, check({ organizationId, ...span }), report, organizationId));
    }
  }
  await part("builds", () => auditBuilds(ledger, { organizationId, from: begin, to: end }, lists, report));
  await part("taxes", async () => {
    result.invoices += await auditTaxes(ledger, scope, report);
  });
}

async function chargesByCycle(ledger: Ledger, organizationId: string): Promise<Map<string, number>> {
  const { rows } = await sql<{ cycle: string; charges: string }>`
    select cycle_start::text as cycle, sum(charges) as charges from usage_by_project
    where organization_id = ${organizationId} group by cycle_start`.execute(ledger);
  return new Map(rows.map(({ cycle, charges }) => [cycle, Number(charges)]));
}

async function countPending(ledger: Ledger, organizationId: string | undefined): Promise<number> {
  const { rows } = await sql<{ pending: number }>`
    select count(*)::int as pending from plan_meters where late_from is not null
      and (${organizationId ?? null}::text is null or organization_id = ${organizationId ?? null}::text)`.execute(
    ledger,
  );
  return rows[0]?.pending ?? 0;
}

/** When the snapshot was taken. */
async function ledgerNow(ledger: Ledger): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select now()`.execute(ledger);
  return rows[0]?.now ?? new Date();
}

/** Tables in which an organization that was ever billed is. */
const TABLES = [
  ...["plan_meters", "billable_changes", "plan_charges", "usage_by_project", "charges"],
  ...["settlements", "invoices", "invoice_charges", "job_runs", "storage_hours", "usage_by_day", "builds"],
] as const;

/** Jumps from one to the next where there is an index. */
async function billedOrganizations(
  ledger: Ledger,
  report: (finding: BillingFinding) => void,
): Promise<string[]> {
  const found = new Set<string>();
  for (const name of TABLES) {
    await auditPart(ledger, { key: name }, report, async () => {
      for (const id of await organizationsOf(ledger, name)) {
        found.add(id);
      }
    });
  }
  return [...found].sort();
}

async function organizationsOf(ledger: Ledger, name: (typeof TABLES)[number]): Promise<string[]> {
  const table = sql.table(name);
  const { rows } = await sql<{ id: string }>`
      with recursive own as (
        select min(organization_id) as id from ${table}
        union all
        select (select min(t.organization_id) from ${table} t where t.organization_id > own.id) from own where own.id is not null
      )
      select id from own where id is not null`.execute(ledger);
  return rows.map(({ id }) => id);
}
