import { billingCycle, type CostAmount, type CostKind, type CostOfDay, forecastDays } from "@slipway/crds";
import { type RawBuilder, sql, type Transaction } from "kysely";
import pg from "pg";
import type { Ledger } from "./connect.ts";
import { listPrices } from "./plan-charges.ts";
import type { LedgerSchema } from "./schema.ts";

/** What was charged in a billing cycle: from sums that are made with the charges (migration 0021). A credit is a negative amount. */

export interface CostQuery {
  organizationId: string;
  /** Start of a billing cycle. */
  cycle: Date;
  /** For a forecast: reads also what that is made of. Absent for a cycle that has ended. */
  now?: Date | undefined;
}

/** What all charges of a kind come to, and how many they are. */
export interface CostSum extends CostAmount {
  charges: number;
}

/** One of an organization's projects that was charged in the cycle. */
export interface ProjectCost {
  projectId: string;
  /** Of a deleted project what it was called then; undefined where no deletion was recorded, or no name with it. */
  deletedName: string | undefined;
  amount: string;
  kinds: CostSum[];
}

/** Terms that end in the rest of the cycle and renew if nothing changes, with what the next ones are like. */
export interface RenewingTerms {
  plan: string;
  paymentMode: "monthly" | "yearly";
  count: number;
}

interface ForecastBasis {
  /** From the first day that a forecast reads, or that of the cycle, to its end. */
  days: CostOfDay[];
  /** What of that late changes made hours of plans cost more, where a forecast is asked for. */
  adjustments: CostOfDay[];
  renewing: RenewingTerms[];
  prices: Awaited<ReturnType<typeof listPrices>>;
}

export interface OrganizationCost extends ForecastBasis {
  kinds: CostSum[];
  /** One page, the dearest first. */
  projects: ProjectCost[];
  /** Projects on all pages. */
  total: number;
}

export interface OneProjectCost extends ForecastBasis {
  kinds: CostSum[];
  /** Whether all charges of the cycle are still there: `days` is computed from them. */
  hasDays: boolean;
}

/** Milliseconds that a read may take, of all its statements. It never waits for a writer. */
const READ_LIMIT_MS = 3_000;
/** SQLSTATE of a statement that took longer than it may. */
const QUERY_CANCELED = "57014";

/** What was asked for could not be read in the time that a read has; the database is there. */
export class ReadTimeout extends Error {
  override readonly name = "ReadTimeout";

  constructor(options?: ErrorOptions) {
    super("reading what was charged took too long", options);
  }
}

/** What an organization was charged, as of one moment. @throws ReadTimeout; and when the database is away */
export function organizationCost(
  ledger: Ledger,
  query: CostQuery & { offset: number; limit: number },
  limitMs = READ_LIMIT_MS,
): Promise<OrganizationCost> {
  const { organizationId, offset, limit } = query;
  const { from, cycle, to } = daysOf(query);
  return snapshot(ledger, limitMs, async (inTime) => {
    const { rows: days } = await sql<CostOfDay>`
      select day::text as day, kind, trim_scale(amount)::text as amount from usage_by_day
      where organization_id = ${organizationId} and day >= ${from}::date and day < ${to}::date
      order by day, kind`.execute(await inTime());
    const kinds = await sumKinds(
      inTime,
      sql`usage_by_day where organization_id = ${organizationId} and day >= ${cycle}::date and day < ${to}::date`,
    );
    const { rows } = await sql<{
      project_id: string;
      name: string | null;
      amount: string;
      kinds: CostSum[];
      total: number;
    }>`
      with page as (
        select project_id, sum(amount) as amount, count(*) over ()::int as total from usage_by_project
        where organization_id = ${organizationId} and cycle_start = ${cycle}::date
        group by project_id order by sum(amount) desc, project_id offset ${offset} limit ${limit}
      )
      select p.project_id, t.name, trim_scale(p.amount)::text as amount, p.total, k.kinds
      from page p
      cross join lateral (
        select json_agg(json_build_object('kind', u.kind, 'amount', trim_scale(u.amount)::text, 'charges', u.charges) order by u.kind) as kinds
        from usage_by_project u
        where u.organization_id = ${organizationId} and u.cycle_start = ${cycle}::date and u.project_id = p.project_id
      ) k
      left join deleted_project_names t on t.organization_id = ${organizationId} and t.project_id = p.project_id
      order by p.amount desc, p.project_id`.execute(await inTime());
    return {
      days,
      kinds,
      projects: rows.map(({ project_id, name, amount, kinds: own }) => ({
        projectId: project_id,
        deletedName: name ?? undefined,
        amount,
        kinds: own,
      })),
      total: rows[0]?.total ?? (await countProjects(inTime, organizationId, cycle)),
      ...(await futureOf(inTime, query)),
    };
  });
}

/** What one project was charged, as of one moment. @throws ReadTimeout; and when the database is away */
export function projectCost(
  ledger: Ledger,
  query: CostQuery & { projectId: string },
  limitMs = READ_LIMIT_MS,
): Promise<OneProjectCost> {
  const { organizationId, projectId } = query;
  const { from, cycle, to } = daysOf(query);
  return snapshot(ledger, limitMs, async (inTime) => {
    const kinds = await sumKinds(
      inTime,
      sql`usage_by_project where organization_id = ${organizationId} and cycle_start = ${cycle}::date
        and project_id = ${projectId}`,
    );
    const { rows: kept } = await sql<{ kept: boolean }>`
      select coalesce(max(due_before) < (${cycle}::date - 1) at time zone 'UTC', true) as kept from retirements`.execute(
      await inTime(),
    );
    const hasDays = kept[0]?.kept ?? true;
    const cycles = [...new Set([cycle, `${from.slice(0, 7)}-01`])];
    const own = sql`organization_id = ${organizationId} and project_id = ${projectId}
      and cycle_start = any (${cycles}::date[])`;
    const { rows: days } = hasDays
      ? await sql<CostOfDay>`
          select day::text as day, kind, trim_scale(sum(amount))::text as amount from (
            select usage_day(scheduled_minute, cycle_start) as day, 'job_run' as kind, amount from job_runs where ${own}
            union all
            select usage_day(due_at, cycle_start), 'job_storage', amount from charges where kind = 'storage' and ${own}
            union all
            select usage_day(starts_at, cycle_start), kind, case kind when 'credit' then -amount else amount end
            from plan_charges where ${own}
          ) charged
          where day >= ${from}::date and day < ${to}::date group by day, kind order by day, kind`.execute(
          await inTime(),
        )
      : { rows: [] };
    return { kinds, days, hasDays, ...(await futureOf(inTime, query, projectId)) };
  });
}

/** The snapshot, for one statement: that may take what is left of the time. */
type Snapshot = () => Promise<Transaction<LedgerSchema>>;

/** All of it sees the same charges, so parts and totals are equal. @throws ReadTimeout */
async function snapshot<T>(
  ledger: Ledger,
  limitMs: number,
  read: (inTime: Snapshot) => Promise<T>,
): Promise<T> {
  try {
    return await ledger
      .transaction()
      .setIsolationLevel("repeatable read")
      .setAccessMode("read only")
      .execute((transaction) => {
        const deadline = performance.now() + limitMs;
        return read(async () => {
          const left = Math.floor(deadline - performance.now());
          if (left <= 0) {
            throw new ReadTimeout();
          }
          await sql`set local statement_timeout = ${sql.lit(left)}`.execute(transaction);
          return transaction;
        });
      });
  } catch (error) {
    throw error instanceof pg.DatabaseError && error.code === QUERY_CANCELED
      ? new ReadTimeout({ cause: error })
      : error;
  }
}

/** The days of a query, as dates: of the cycle, and the first one that is read. */
function daysOf({ cycle, now }: Pick<CostQuery, "cycle" | "now">): {
  from: string;
  cycle: string;
  to: string;
} {
  const { startedAt, nextResetAt } = billingCycle(cycle);
  if (startedAt.getTime() !== cycle.getTime()) {
    throw new RangeError("not the start of a billing cycle");
  }
  const [first, to] = [startedAt, nextResetAt].map((at) => at.toISOString().slice(0, 10)) as [string, string];
  const read = now === undefined ? first : forecastDays(now).from;
  return { from: read < first ? read : first, cycle: first, to };
}

async function sumKinds(inTime: Snapshot, from: RawBuilder<unknown>): Promise<CostSum[]> {
  const { rows } = await sql<{ kind: CostKind; amount: string; charges: string }>`
    select kind, trim_scale(sum(amount))::text as amount, sum(charges)::text as charges from ${from}
    group by kind order by kind`.execute(await inTime());
  return rows.map(({ kind, amount, charges }) => ({ kind, amount, charges: Number(charges) }));
}

async function countProjects(inTime: Snapshot, organizationId: string, cycle: string): Promise<number> {
  const { rows } = await sql<{ total: number }>`
    select count(distinct project_id)::int as total from usage_by_project
    where organization_id = ${organizationId} and cycle_start = ${cycle}::date`.execute(await inTime());
  return rows[0]?.total ?? 0;
}

/**
 * Terms that end in the cycle, with what late changes made of them, and whose successors are not recorded yet, of instances that exist by what was recorded last, under a contract
 * that renews.
 */
async function futureOf(
  inTime: Snapshot,
  { organizationId, cycle, now }: CostQuery,
  projectId?: string,
): Promise<Pick<ForecastBasis, "adjustments" | "renewing" | "prices">> {
  if (now === undefined) {
    return { adjustments: [], renewing: [], prices: [] };
  }
  const { startedAt, nextResetAt } = billingCycle(cycle);
  const { from, to } = daysOf({ cycle, now });
  const { rows } = await sql<{ plan: string; mode: "monthly" | "yearly"; count: number }>`
    with facts as (
      select project_uid, instance, ends_at, sum(case kind when 'credit' then -amount else amount end) as net from plan_charges
      where organization_id = ${organizationId} and kind in ('term', 'credit')
        and ends_at >= ${startedAt} and ends_at < ${nextResetAt}
        and (${projectId ?? null}::text is null or project_id = ${projectId ?? null})
      group by project_uid, instance, ends_at, coalesce(adjusts, key)
    ), ending as (
      select project_uid, instance, ends_at from facts where net <> 0
      group by project_uid, instance, ends_at having bool_and(net > 0)
    )
    select s.plan, s.payment_mode as mode, count(*)::int as count
    from ending t
    join plan_meters m using (project_uid)
    cross join lateral (
      select plan, payment_mode, renews, paused, instances from billable_changes c
      where c.project_uid = t.project_uid order by number desc limit 1
    ) s
    where not m.ended and t.ends_at >= coalesce(m.metered_until, '-infinity')
      and s.payment_mode <> 'hourly' and s.renews and not s.paused and t.instance < s.instances
    group by s.plan, s.payment_mode order by s.plan, s.payment_mode`.execute(await inTime());
  const renewing = rows.map(({ plan, mode, count }) => ({ plan, paymentMode: mode, count }));
  const { rows: adjustments } = await sql<CostOfDay>`
    select usage_day(starts_at, cycle_start)::text as day, kind, trim_scale(sum(amount))::text as amount from plan_charges
    where organization_id = ${organizationId} and adjusts is not null and kind in ('instance_hour', 'storage_hour')
      and cycle_start >= date_trunc('month', ${from}::date) and cycle_start < ${to}::date and usage_day(starts_at, cycle_start) >= ${from}::date
      and (${projectId ?? null}::text is null or project_id = ${projectId ?? null})
    group by 1, 2 order by 1, 2`.execute(await inTime());
  return { adjustments, renewing, prices: renewing.length === 0 ? [] : await listPrices(await inTime()) };
}
