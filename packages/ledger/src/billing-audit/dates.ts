import { type RawBuilder, sql } from "kysely";
import type { Ledger } from "../connect.ts";
import type { BillingFinding } from "./findings.ts";
import { dayOf, nextCycle } from "./scope.ts";

/** Which cycles an organization has anything of. */

/** Cycles before the current one that are audited: what has an earlier date is a finding, and so is what has a later one than now. */
const MOST_CYCLES = 120;
const DAY_MS = 86_400_000;

const day = (column: string) => sql`(${sql.ref(column)} at time zone 'UTC')::date`;

/** Tables with the dates by which their rows are audited. */
const dates: readonly [table: string, first: RawBuilder<unknown>, last?: RawBuilder<unknown>][] = [
  ["billable_changes", day("at")],
  ["charges", sql`least(cycle_start, settle_cycle)`, sql`greatest(cycle_start, settle_cycle)`],
  ["invoice_charges", sql`cycle_start`],
  ["invoice_lines", sql`cycle_start`],
  ["invoices", sql`cycle_start`],
  [
    "job_runs",
    sql`least(cycle_start, ${day("scheduled_minute")})`,
    sql`greatest(cycle_start, ${day("scheduled_minute")})`,
  ],
  ["plan_charges", sql`cycle_start`],
  ["settlements", sql`cycle_start`],
  ["storage_hours", day("hour_started_at")],
  ["usage_by_day", sql`day`],
  ["usage_by_project", sql`cycle_start`],
];

interface Dated {
  relation: string;
  first: string;
  last: string;
  /** The first day that is audited. */
  from: string;
  is_outside: boolean;
}

/** The first day of the first cycle of those that are audited, of which an organization has anything; undefined where it has nothing. */
export async function firstCycle(
  ledger: Ledger,
  { organizationId, now }: { organizationId: string; now: Date },
  report: (finding: BillingFinding) => void,
): Promise<string | undefined> {
  const end = nextCycle(dayOf(new Date(now.getTime() + DAY_MS)));
  const ranges = dates.map(
    ([relation, first, last = first]) => sql`
      select ${relation}::text as relation, min(${first}) as first, max(${last}) as last from ${sql.table(relation)}
      where organization_id = ${organizationId}`,
  );
  const { rows } = await sql<Dated>`
    select relation, r.first::text, r.last::text, date_trunc('month', greatest(r.first, b.first))::date::text as from,
      r.first < b.first or r.last >= ${end}::date as is_outside
    from (${sql.join(ranges, sql` union all `)}) r
      cross join (select (${end}::date - make_interval(months => ${MOST_CYCLES}))::date as first) b
    where r.first is not null`.execute(ledger);
  for (const { relation, first, last, is_outside } of rows) {
    if (is_outside) {
      report({
        code: "DATE_OUT_OF_RANGE",
        organizationId,
        key: relation,
        expected: `before ${end}, and ${MOST_CYCLES} months before that at most`,
        found: first === last ? first : `${first} to ${last}`,
      });
    }
  }
  const known = rows.map(({ from }) => from).filter((from) => from < end);
  return known.sort()[0];
}
