import { type RawBuilder, sql } from "kysely";
import type { Ledger } from "../connect.ts";
import type { BillingFinding, BillingFindingCode } from "./findings.ts";
import type { AuditScope } from "./scope.ts";

/** Audits that are one statement each: a row is a finding. */

/** Findings of each code that a statement describes: the others are counted. */
const LISTED = 100;
/** Characters of a value that are described. */
const MOST_CHARACTERS = 500;

interface Found {
  code: BillingFindingCode;
  key: string;
  expected: string | null;
  found: string | null;
  others: string;
}

export type Check = (scope: Pick<AuditScope, "organizationId" | "from" | "to">) => RawBuilder<unknown>;

/** Runs a statement that has a row for each finding: `code`, `key`, `expected` and `found`. */
export async function runCheck(
  ledger: Ledger,
  statement: RawBuilder<unknown>,
  report: (finding: BillingFinding, others?: number) => void,
  organizationId?: string,
): Promise<void> {
  const text = (column: string) => sql`left(${sql.ref(column)}::text, ${MOST_CHARACTERS})`;
  const { rows } = await sql<Found>`
    select code, ${text("key")} as key, ${text("expected")} as expected, ${text("found")} as found,
      case when number = 1 then greatest(0, count - ${LISTED}) else 0 end as others
    from (select *, row_number() over (partition by code order by key) as number, count(*) over (partition by code) as count
      from (${statement}) f) numbered
    where number <= ${LISTED} order by code, number`.execute(ledger);
  for (const { code, key, expected, found, others } of rows) {
    const values = { ...(expected === null ? {} : { expected }), ...(found === null ? {} : { found }) };
    report({ code, organizationId, key, ...values }, Number(others));
  }
}

/** What is due before may be deleted. */
const keptFrom = sql`(select coalesce(max(due_before), '-infinity') from retirements)`;

/** Runs of jobs and their charges: one for each, and each with its amount, in its cycle. */
export const runCharges: Check = ({ organizationId, from, to }) => sql`
  select 'RUN_CHARGE_' || case when r.id is null then 'UNEXPECTED' when c.key is null then 'MISSING' else 'DIFFERS' end as code,
    'job_run/' || coalesce(r.project_id || '/' || r.id, c.project_id || '/' || c.key) as key,
    concat_ws(', ', trim_scale(r.billed_minutes * r.price_per_minute), billing_cycle(r.started_at)) as expected,
    concat_ws(', ', trim_scale(c.amount), c.cycle_start) as found
  from (select * from job_runs where organization_id = ${organizationId}
      and scheduled_minute >= ${from}::timestamp at time zone 'UTC' and scheduled_minute < ${to}::timestamp at time zone 'UTC') r
    full join (select * from charges where organization_id = ${organizationId} and kind = 'job_run'
      and due_at >= ${from}::timestamp at time zone 'UTC' and due_at < ${to}::timestamp at time zone 'UTC') c
    on (c.project_id, c.key, c.due_at) = (r.project_id, r.id, r.scheduled_minute)
  where (r.id is null or c.key is null or c.amount <> r.amount or r.amount <> r.billed_minutes * r.price_per_minute
      or r.billed_minutes <> least(60, greatest(1, ceil(extract(epoch from r.billed_until - r.started_at) / 60)))
      or c.cycle_start <> billing_cycle(r.started_at) or ${isOfOtherSettlement})
    and coalesce(r.scheduled_minute, c.due_at) >= ${keptFrom}`;

/** Hours of storage of jobs and their charges. An hour of a project begins where the one before ends. */
export const storageCharges: Check = ({ organizationId, from, to }) => {
  const hours = sql`select * from storage_hours where organization_id = ${organizationId}
    and hour_started_at >= ${from}::timestamp at time zone 'UTC' and hour_started_at < ${to}::timestamp at time zone 'UTC'`;
  return sql`
  select 'STORAGE_CHARGE_' || case when h.project_uid is null then 'UNEXPECTED' when c.key is null then 'MISSING' else 'DIFFERS' end as code,
    'storage/' || coalesce(h.project_id || '/' || h.project_uid || '/' || h.hour_index, c.project_id || '/' || c.key) as key,
    concat_ws(', ', h.hour_started_at, trim_scale(h.gb * h.price_per_gb_hour)) as expected,
    concat_ws(', ', c.due_at, trim_scale(c.amount), c.cycle_start) as found
  from (select s.*, s.hour_started_at - s.hour_index * interval '1 hour' <> u.begun as moved
      from (${hours}) s join (
        select project_uid, (select hour_started_at - hour_index * interval '1 hour' from storage_hours f
          where f.organization_id = ${organizationId} and f.project_uid = own.project_uid order by hour_index limit 1) as begun
        from (select distinct project_uid from (${hours}) o) own) u using (project_uid)) h
    full join (select * from charges where organization_id = ${organizationId} and kind = 'storage'
      and due_at >= ${from}::timestamp at time zone 'UTC' and due_at < ${to}::timestamp at time zone 'UTC') c
    on (c.project_id, c.key, c.due_at) = (h.project_id, h.project_uid || '/' || h.hour_index, h.hour_started_at)
  where (h.project_uid is null or c.key is null or h.moved or c.amount <> h.amount or h.amount <> h.gb * h.price_per_gb_hour
      or c.cycle_start <> billing_cycle(c.due_at) or ${isOfOtherSettlement})
    and coalesce(h.hour_started_at, c.due_at) >= ${keptFrom}`;
};

/** A charge is in its own cycle's settlement, or in a later one where that was closed before. */
const isOfOtherSettlement = sql`(c.settle_cycle <> c.cycle_start and not (c.settle_cycle > c.cycle_start and exists (
  select from billing_cycles b where b.cycle_start = (c.settle_cycle - interval '1 month')::date
    and b.closed_at <= c.recorded_at + interval '1 hour')))`;

/** Each sum of usage is that of its charges, while these are kept. A charge of a run is due in its cycle or shortly before. */
export const sums: Check = ({ organizationId, from, to }) => sql`
  with charge as (
    select cycle_start, project_id, case kind when 'storage' then 'job_storage' else kind end as kind,
      usage_day(due_at, cycle_start) as day, amount
    from charges where organization_id = ${organizationId} and cycle_start >= ${from}::date and cycle_start < ${to}::date
      and due_at >= (${from}::timestamp - interval '1 month') at time zone 'UTC'
      and due_at < (${to}::timestamp + interval '1 month') at time zone 'UTC'
    union all
    select cycle_start, project_id, kind, usage_day(starts_at, cycle_start), case kind when 'credit' then -amount else amount end
    from plan_charges where organization_id = ${organizationId} and cycle_start >= ${from}::date and cycle_start < ${to}::date
  ), grouped as materialized (
    select cycle_start, project_id, kind, day, sum(amount) as amount, count(*) as charges from charge group by 1, 2, 3, 4
  ), charged as (
    select cycle_start as date, project_id, kind, sum(amount) as amount, sum(charges) as charges from grouped group by 1, 2, 3
    union all
    select day, '', kind, sum(amount), sum(charges) from grouped group by 1, 2, 3
  ), summed as (
    select cycle_start as date, project_id, kind, amount, charges from usage_by_project
    where organization_id = ${organizationId} and cycle_start >= ${from}::date and cycle_start < ${to}::date
    union all
    select day, '', kind, amount, charges from usage_by_day
    where organization_id = ${organizationId} and day >= ${from}::date and day < ${to}::date
  )
  select 'SUM_DIFFERS' as code, concat_ws('/', date, nullif(project_id, ''), kind) as key,
    concat(trim_scale(c.amount), ' of ', coalesce(c.charges, 0), ' charges') as expected,
    concat(trim_scale(s.amount), ' of ', coalesce(s.charges, 0), ' charges') as found
  from summed s full join charged c using (date, project_id, kind)
  where (s.amount, s.charges) is distinct from (c.amount, c.charges::bigint)
    and (kind not in ('job_run', 'job_storage')
      or date_trunc('month', date::timestamp) - interval '1 day' > ${keptFrom} at time zone 'UTC')`;

/**
 * Whether no charge of a settlement `s` can have been deleted: by the leaves of those that were recorded while its cycle was open, which are all sealed.
 */
const isKept = sql`(exists (select from billing_cycles where cycle_start = s.cycle_start
    and closed_at < (select max(sealed_to) from billing_seals))
  and not exists (
    select from billing_cycles b
      join billing_seals z on z.sealed_to > (b.cycle_start - interval '1 day') at time zone 'UTC'
        and z.sealed_from < b.closed_at + interval '1 hour'
      join billing_seal_leaves l on l.number = z.number and l.relation = 'charges' and l.organization_id = s.organization_id
    where b.cycle_start = s.cycle_start and split_part(l.part, '/', 2) = to_char(s.cycle_start, 'YYYY-MM-DD')
      and split_part(l.part, '/', 1)::date <= (${keptFrom} at time zone 'UTC')::date))`;

/** Settlements begin with what the one before left, and have all charges of their cycle, while these are kept: no more than that in any case. */
export const settlements: Check = ({ organizationId, from, to }) => sql`
  select 'SETTLEMENT_DIFFERS' as code, s.cycle_start::text as key,
    concat('carry ', trim_scale(coalesce(p.carry_out, 0)), ', charges ', trim_scale(c.amount)) as expected,
    concat('carry ', trim_scale(s.carry_in), ', charges ', trim_scale(s.total - s.carry_in), ', ', s.charged_cents, ' cents') as found
  from settlements s
    left join lateral (select carry_out from settlements p
      where p.organization_id = s.organization_id and p.cycle_start < s.cycle_start order by cycle_start desc limit 1) p on true
    cross join lateral (select coalesce(sum(amount), 0) as amount from charges c
      where c.organization_id = s.organization_id and c.settle_cycle = s.cycle_start) c
  where s.organization_id = ${organizationId} and s.cycle_start >= ${from}::date and s.cycle_start < ${to}::date
    and (s.carry_in <> coalesce(p.carry_out, 0) or s.charged_cents <> trunc(s.total) or s.carry_out <> s.total - trunc(s.total)
      or case sign(s.total - s.carry_in - c.amount) when 0 then false when -1 then true
        else s.cycle_start - interval '1 day' > ${keptFrom} at time zone 'UTC' and ${isKept} end)
  union all
  select 'SETTLEMENT_DIFFERS', b.cycle_start::text, 'a settlement', 'none'
  from billing_cycles b
  where b.settled_at is not null and b.cycle_start >= ${from}::date and b.cycle_start < ${to}::date
    and exists (select from charges c where c.settle_cycle = b.cycle_start and c.organization_id = ${organizationId})
    and not exists (select from settlements s where s.cycle_start = b.cycle_start and s.organization_id = ${organizationId})`;

/** The time before which charges may be deleted is no later than the ledger keeps them. */
export const retirement = (keptDays: number) => sql`
  select 'RETIREMENT_AHEAD' as code, 'retirements' as key, 'at least ' || ${keptDays}::int || ' days ago' as expected, due_before::text as found
  from retirements where due_before > now() - make_interval(days => ${keptDays}::int) + interval '1 hour'`;
