import { billingCycle } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import { listPrices } from "../plan-charges.ts";
import { RETIRED_AFTER_DAYS } from "../retention.ts";
import { type Check, retirement, runCharges, runCheck, settlements, storageCharges, sums } from "./checks.ts";
import { BillingFindings } from "./findings.ts";
import { chargesOnInvoices, invoicedCharges, lines, numbers, payments, totals } from "./invoice-checks.ts";
import { auditPlanCharges } from "./plan-charges.ts";
import { nextCycle, scopeOf } from "./scope.ts";
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
  onProgress?: ((line: string) => void) | undefined;
}

export interface BillingAudit {
  organizations: number;
  /** Charges of plans that were compared. */
  planCharges: number;
  invoices: number;
  seals: AuditedSeals;
  findings: BillingFindings;
}

/** Time of one statement, and how long the snapshot is kept while nothing is asked. */
const LIMITS = [
  sql`set local statement_timeout = '10min'`,
  sql`set local idle_in_transaction_session_timeout = '10min'`,
];

const checks: readonly Check[] = [
  ...[runCharges, storageCharges, sums, settlements],
  ...[chargesOnInvoices, invoicedCharges, lines, totals, payments],
];

/**
 * Audits as of one moment. It reads a few projects, or a statement's result, at a time.
 * @param ledger a connection whose answers may take ten minutes
 * @throws when the database is away
 */
export function auditBilling(ledger: Ledger, options: BillingAuditOptions = {}): Promise<BillingAudit> {
  return ledger
    .transaction()
    .setIsolationLevel("repeatable read")
    .setAccessMode("read only")
    .execute(async (transaction) => {
      for (const limit of LIMITS) {
        await limit.execute(transaction);
      }
      return auditSnapshot(transaction, options);
    });
}

/** @internal Audits what a transaction sees. */
export async function auditSnapshot(
  ledger: Ledger,
  { organizationId, from, to, head, onProgress }: BillingAuditOptions = {},
): Promise<BillingAudit> {
  const findings = new BillingFindings();
  const { report } = findings;
  const begin = from && dayOf(billingCycle(from).startedAt);
  const seals = await auditSeals(ledger, { organizationId, from: begin, head }, report);
  onProgress?.(`${seals.seals} seals, ${findings.total} findings`);
  const result: BillingAudit = { organizations: 0, planCharges: 0, invoices: 0, seals, findings };
  const lists = await listPrices(ledger);
  const organizations = organizationId === undefined ? await billedOrganizations(ledger) : [organizationId];
  const now = await ledgerNow(ledger);
  const end = nextCycle(dayOf(to !== undefined && to < now ? to : now));
  for (const id of organizations) {
    const first = (await firstCycle(ledger, id)) ?? end;
    const scope = scopeOf(id, { from: begin !== undefined && begin > first ? begin : first, to: end, now });
    result.planCharges += await auditPlanCharges(ledger, scope, lists, report);
    for (const check of checks) {
      await runCheck(ledger, check(scope), report, id);
    }
    result.invoices += await auditTaxes(ledger, scope, report);
    result.organizations += 1;
    onProgress?.(`${result.organizations} of ${organizations.length}: ${id}, ${findings.total} findings`);
  }
  await runCheck(ledger, numbers, report);
  await runCheck(ledger, retirement(RETIRED_AFTER_DAYS), report);
  return result;
}

const dayOf = (at: Date): string => at.toISOString().slice(0, 10);

/** When the snapshot was taken. */
async function ledgerNow(ledger: Ledger): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select now()`.execute(ledger);
  return rows[0]?.now ?? new Date();
}

/** The first cycle in which an organization has anything; undefined where it has nothing. */
async function firstCycle(ledger: Ledger, organizationId: string): Promise<string | undefined> {
  const { rows } = await sql<{ first: string | null }>`
    select least(
      (select min(cycle_start) from usage_by_project where organization_id = ${organizationId}),
      (select date_trunc('month', min(day))::date from usage_by_day where organization_id = ${organizationId}),
      (select min(cycle_start) from plan_charges where organization_id = ${organizationId}),
      (select date_trunc('month', min(at) at time zone 'UTC')::date from billable_changes where organization_id = ${organizationId}),
      (select min(cycle_start) from charges where organization_id = ${organizationId}),
      (select min(billing_cycle(scheduled_minute)) from job_runs where organization_id = ${organizationId}),
      (select min(cycle_start) from settlements where organization_id = ${organizationId}),
      (select min(cycle_start) from invoices where organization_id = ${organizationId}))::text as first`.execute(
    ledger,
  );
  return rows[0]?.first ?? undefined;
}

/** Tables in which an organization that was ever billed is. */
const TABLES = [
  ...["plan_meters", "billable_changes", "plan_charges", "usage_by_project", "charges"],
  ...["settlements", "invoices", "invoice_charges"],
] as const;

/** Jumps from one to the next where there is an index. */
async function billedOrganizations(ledger: Ledger): Promise<string[]> {
  const found = new Set<string>();
  for (const name of TABLES) {
    const table = sql.table(name);
    const { rows } = await sql<{ id: string }>`
      with recursive own as (
        select min(organization_id) as id from ${table}
        union all
        select (select min(t.organization_id) from ${table} t where t.organization_id > own.id) from own where own.id is not null
      )
      select id from own where id is not null`.execute(ledger);
    for (const { id } of rows) {
      found.add(id);
    }
  }
  return [...found].sort();
}
