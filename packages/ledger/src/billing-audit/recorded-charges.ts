import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import type { AuditedCharge } from "./facts.ts";
import type { Meter, Metered } from "./histories.ts";

/** Recorded charges of plans, as an audit reads them. */

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

/** The charges of a month of some projects, by their uids. */
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
    where organization_id = ${organizationId} and cycle_start = ${month}::date order by key`.execute(ledger);
  const grouped = Map.groupBy(rows, ({ project_uid }) => project_uid);
  return new Map(grouped.entries().map(([uid, own]) => [uid, own.map(chargeOf)]));
}

/** All charges of a project, oldest first: keys begin with its uid. */
export async function readProject(ledger: Ledger, { organization_id, project_id, project_uid }: Meter) {
  const { rows } = await sql<Row>`
    select ${columns} from plan_charges where key >= ${`${project_uid}/`} and key < ${`${project_uid}0`}
      and (organization_id, project_id, project_uid) = (${organization_id}, ${project_id}, ${project_uid})
    order by late_at nulls first, key`.execute(ledger);
  return rows.map(chargeOf);
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
