import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import type { AuditedCharge } from "./facts.ts";
import type { Meter, Metered } from "./histories.ts";
import type { AuditScope } from "./scope.ts";

/** Recorded charges of plans, as an audit reads them: what has a quantity is of no history. */

interface Row {
  project_uid: string;
  key: string;
  kind: AuditedCharge["kind"];
  starts: number;
  ends: number;
  final: number;
  cycle: string;
  plan: string | null;
  instance: number | null;
  gb: number | null;
  price: string;
  amount: string;
  adjusts: string | null;
  late: number | null;
}

/** Times with what they have beyond a millisecond, which no charge has. */
const columns = sql`project_uid, key, kind, (extract(epoch from starts_at) * 1000)::float8 as starts,
  (extract(epoch from ends_at) * 1000)::float8 as ends, (extract(epoch from final_at) * 1000)::float8 as final,
  cycle_start::text as cycle, plan, instance, gb, trim_scale(price)::text as price, trim_scale(amount)::text as amount, adjusts,
  (extract(epoch from late_at) * 1000)::float8 as late`;

/** Charges that are in memory at a time, of one month or one project. */
export const MOST_CHARGES = 200_000;

/** The charges of a month of some projects, by their uids. @throws Error where there are more than are audited */
export async function readMonth(
  ledger: Ledger,
  organizationId: string,
  month: string,
  projects: readonly Metered[],
): Promise<Map<string, AuditedCharge[]>> {
  const ids = projects.map(({ meter }) => meter.project_id);
  const uids = projects.map(({ meter }) => meter.project_uid);
  const { rows } = await sql<Row>`
    select ${columns} from plan_charges join unnest(${ids}::text[], ${uids}::text[]) own (project_id, project_uid)
      using (project_id, project_uid)
    where organization_id = ${organizationId} and cycle_start = ${month}::date and quantity is null order by key limit ${MOST_CHARGES + 1}`.execute(
    ledger,
  );
  const grouped = Map.groupBy(refuseMany(rows), ({ project_uid }) => project_uid);
  return new Map(grouped.entries().map(([uid, own]) => [uid, own.map(chargeOf)]));
}

/** Hours of a project by their numbers, of which `to` is not one of them; or all that is no hour. */
export type FactRange = { from: number; to: number } | "terms";

/** What is recorded of facts of a project, oldest first: keys begin with its uid. @throws Error where there are more than are audited */
export async function readFacts(
  ledger: Ledger,
  { organization_id, project_id, project_uid }: Meter,
  range: FactRange,
): Promise<AuditedCharge[]> {
  const isWanted = range === "terms" ? sql`hour is null` : sql`hour >= ${range.from} and hour < ${range.to}`;
  const { rows } = await sql<Row>`
    select ${columns} from plan_charges cross join lateral (select ${HOUR} as hour) h
    where ${ofProject(project_uid)}
      and (organization_id, project_id, project_uid) = (${organization_id}, ${project_id}, ${project_uid}) and quantity is null
      and ${isWanted}
    order by late_at nulls first, key limit ${MOST_CHARGES + 1}`.execute(ledger);
  return refuseMany(rows).map(chargeOf);
}

const ofProject = (uid: string) => sql`key >= ${`${uid}/`} and key < ${`${uid}0`}`;

/** Hours that a project may have: more than of the years that are audited. */
export const MOST_HOURS = 100_000;

/** Number of the hour of a fact, which its key has; null of another one, and beyond the most. */
const HOUR = sql`case when split_part(coalesce(adjusts, key), '/', 2) in ('instance_hour', 'storage_hour')
  and split_part(coalesce(adjusts, key), '/', 3) ~ '^[0-9]{1,5}$' then split_part(coalesce(adjusts, key), '/', 3)::integer end`;

function refuseMany(rows: readonly Row[]): readonly Row[] {
  if (rows.length > MOST_CHARGES) {
    throw new Error(`more than ${MOST_CHARGES} charges`);
  }
  return rows;
}

/** How many charges there are of each project's months, by `ID/MONTH`: by the sums of usage, without reading them. */
export async function countCharges(
  ledger: Ledger,
  { organizationId, from, to }: Pick<AuditScope, "organizationId" | "from" | "to">,
  projects: readonly Metered[],
): Promise<Map<string, number>> {
  const ids = projects.map(({ meter }) => meter.project_id);
  const { rows } = await sql<{ key: string; charges: string }>`
    select project_id || '/' || cycle_start as key, sum(charges) as charges from usage_by_project
    where organization_id = ${organizationId} and cycle_start >= ${from}::date and cycle_start < ${to}::date
      and project_id = any (${ids}::text[]) group by project_id, cycle_start`.execute(ledger);
  return new Map(rows.map(({ key, charges }) => [key, Number(charges)]));
}

function chargeOf(row: Row): AuditedCharge {
  return {
    key: row.key,
    kind: row.kind,
    from: row.starts,
    to: row.ends,
    finalAt: row.final,
    cycle: row.cycle,
    ...(row.plan === null ? {} : { plan: row.plan }),
    ...(row.instance === null ? {} : { instance: row.instance }),
    ...(row.gb === null ? {} : { gb: row.gb }),
    price: row.price,
    amount: row.amount,
    ...(row.adjusts === null ? {} : { adjusts: row.adjusts }),
    ...(row.late === null ? {} : { lateAt: row.late }),
  };
}
