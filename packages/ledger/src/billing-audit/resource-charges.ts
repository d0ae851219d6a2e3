import {
  buildCharge,
  type PriceList,
  type ResourceCharge,
  type ResourceChargeKind,
  type ResourcePrice,
} from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import { ENDED_BUILDS_DAYS } from "../resource-charges.ts";
import type { Check } from "./checks.ts";
import { timeOf } from "./facts.ts";
import type { BillingFinding } from "./findings.ts";

/** Audits charges of what projects use beside their plans: those with a quantity. docs/billing-audit.md#what-is-compared */

/** The price of each kind. */
const PRICES: Readonly<Record<ResourceChargeKind, ResourcePrice>> = { build_minute: "buildMinute" };

/**
 * A charge with a quantity has the price that was in force at its start, and that times its quantity. Its key is its project's and its kind's, with a fact,
 * so that none is charged twice; and it is no other project's than the plan's charges of its uid.
 */
export const quantityCharges: Check = ({ organizationId, from, to }) => sql`
  select case when is_stray then 'CHARGE_UNEXPECTED' else 'CHARGE_DIFFERS' end as code, key,
    concat_ws(', ', 'price ' || trim_scale(wanted), 'amount ' || trim_scale(quantity * wanted), billing_cycle(starts_at)) as expected,
    concat(organization_id, '/', project_id, ', ', kind, ', ', starts_at, '/', ends_at, ', final ', final_at, ', quantity ', trim_scale(quantity),
      ', price ', trim_scale(price), ', amount ', trim_scale(amount), ', ', cycle_start) as found
  from (
    select p.*, coalesce((select nullif(l.resources ->> n.name, '')::numeric from price_lists l where l.from_at <= p.starts_at
        order by l.from_at desc limit 1), 0) as wanted,
      n.name is null or not starts_with(p.key, concat(p.project_uid, '/', p.kind, '/'))
        or length(p.key) = length(concat(p.project_uid, '/', p.kind, '/'))
        or exists (select from plan_meters m where m.project_uid = p.project_uid
          and (m.organization_id, m.project_id) <> (p.organization_id, p.project_id)) as is_stray
    from plan_charges p left join json_each_text(${JSON.stringify(PRICES)}::json) n (kind, name) on n.kind = p.kind
    where p.organization_id = ${organizationId} and p.cycle_start >= ${from}::date and p.cycle_start < ${to}::date
      and p.quantity is not null
  ) charge
  where is_stray or price <> wanted or amount <> quantity * wanted or quantity <= 0 or cycle_start <> billing_cycle(starts_at)
    or not (starts_at < ends_at and final_at between starts_at and ends_at)
    or adjusts is not null or late_at is not null or plan is not null or instance is not null or gb is not null`;

/** Builds that are read together. */
const BUILDS = 2_000;

interface BuildRow {
  project_id: string;
  project_uid: string;
  id: string;
  ran_from: Date;
  ran_until: Date;
  error_code: string | null;
  /** It was noted as it ended, and is not any more. */
  is_due: boolean;
  charged_project: string | null;
  starts: number | null;
  ends: number | null;
  final: number | null;
  quantity: string | null;
}

/**
 * Compares charges of builds with the builds that the history still has: the newest ones of each project. One that has ended has its charge, or the note
 * from which that follows, wherever builds had a price by then. Of one that ended long ago both may have gone, and only the seals show that.
 * @param scope days by which builds ran
 */
export async function auditBuilds(
  ledger: Ledger,
  { organizationId, from, to }: { organizationId: string; from: string | undefined; to: string },
  lists: readonly PriceList[],
  report: (finding: BillingFinding) => void,
): Promise<void> {
  const ms = (column: string) => sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;
  for (let last: [project: string, id: string] = ["", ""]; ; ) {
    const { rows } = await sql<BuildRow>`
      select b.project_id, b.project_uid, b.id, b.ran_from, b.ran_until, b.error_code,
        least(b.finished_at, b.updated_at) >= now() - make_interval(days => ${ENDED_BUILDS_DAYS})
          and exists (select from price_lists where resources -> ${PRICES.build_minute}::text is not null
            and recorded_at <= least(b.finished_at, b.updated_at))
          and not exists (select from ended_builds e
            where (e.organization_id, e.project_id, e.build_id) = (b.organization_id, b.project_id, b.id)) as is_due,
        c.organization_id || '/' || c.project_id as charged_project, ${ms("c.starts_at")} as starts, ${ms("c.ends_at")} as ends,
        ${ms("c.final_at")} as final, trim_scale(c.quantity)::text as quantity
      from builds b left join plan_charges c on c.key = b.project_uid || '/build_minute/' || b.id
      where b.organization_id = ${organizationId} and (b.project_id, b.id) > (${last[0]}, ${last[1]})
        and b.finished_at is not null and b.ran_from is not null and b.ran_until is not null
        and b.ran_from >= coalesce(${from ?? null}::timestamp at time zone 'UTC', '-infinity')
        and b.ran_from < ${to}::timestamp at time zone 'UTC'
      order by b.project_id, b.id limit ${BUILDS}`.execute(ledger);
    for (const row of rows) {
      const found = compareBuild(organizationId, row, lists);
      if (found !== undefined) {
        report({ organizationId, key: `${row.project_uid}/build_minute/${row.id}`, ...found });
      }
    }
    const end = rows.at(-1);
    if (end === undefined || rows.length < BUILDS) {
      return;
    }
    last = [end.project_id, end.id];
  }
}

/** Price and amount of what is charged are compared with its start and quantity, for all that have these. */
function compareBuild(
  organizationId: string,
  row: BuildRow,
  lists: readonly PriceList[],
): Pick<BillingFinding, "code" | "expected" | "found"> | undefined {
  const wanted = buildCharge(
    {
      projectUid: row.project_uid,
      buildId: row.id,
      ranFrom: row.ran_from.getTime(),
      ranUntil: row.ran_until.getTime(),
      errorCode: row.error_code ?? undefined,
    },
    lists,
  );
  const project = `${organizationId}/${row.project_id}`;
  const expected = wanted && `${project}, ${describe(wanted)}`;
  if (row.quantity === null) {
    return row.is_due && expected !== undefined ? { code: "BUILD_CHARGE_MISSING", expected } : undefined;
  }
  const { starts, ends, final, quantity } = row;
  const charged = {
    from: starts ?? Number.NaN,
    to: ends ?? Number.NaN,
    finalAt: final ?? Number.NaN,
    quantity,
  };
  const found = `${row.charged_project}, ${describe(charged)}`;
  if (wanted === undefined) {
    return { code: "CHARGE_UNEXPECTED", found };
  }
  const isSame =
    row.charged_project === project &&
    wanted.from === charged.from &&
    wanted.to === charged.to &&
    wanted.finalAt === charged.finalAt &&
    wanted.quantity === quantity;
  return isSame ? undefined : { code: "CHARGE_DIFFERS", expected, found };
}

type Fact = Pick<ResourceCharge, "from" | "to" | "finalAt" | "quantity">;

const describe = ({ from, to, finalAt, quantity }: Fact): string =>
  `${timeOf(from)}/${timeOf(to)}, final ${timeOf(finalAt)}, quantity ${quantity}`;
