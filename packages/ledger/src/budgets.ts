import { billingCycle } from "@slipway/crds";
import { type RawBuilder, sql } from "kysely";
import type { Ledger } from "./connect.ts";

/** What an organization wants to spend in a billing cycle. Compared with the sums of what was charged, which are made with the charges. */

export interface BudgetSettings {
  /** BRL cents, a plain decimal. */
  amount: string;
  /** Percent of it that are notified of, in ascending order. */
  notices: readonly number[];
  /** Whether projects are paused that reach all of it. */
  hardCap: boolean;
}

/** A budget, and what has become of it in a cycle. */
export interface Budget extends BudgetSettings {
  /** What the cycle's charges come to so far. Below zero where credits are more. */
  spent: string;
  /** Thresholds that are recorded as reached in the cycle, with this amount. */
  reached: { threshold: number; at: Date }[];
  createdAt: Date;
  updatedAt: Date;
}

/** Percent of a budget at which a hard cap pauses. */
export const EXHAUSTED_PERCENT = 100;

/** The first day of the cycle that a moment lies in, as the sums have it. */
export const cycleDay = (at: Date): string => billingCycle(at).startedAt.toISOString().slice(0, 10);

/** What was charged in a cycle: a row for each day and kind of charge. */
export const spentIn = (organizationId: RawBuilder<unknown>, cycle: RawBuilder<unknown>) => sql`(
  select coalesce(sum(u.amount), 0) from usage_by_day u
  where u.organization_id = ${organizationId} and u.day >= ${cycle} and u.day < ${cycle} + interval '1 month')`;

/**
 * Sets an organization's budget. Set again as it is it stays as it is; with another amount its thresholds can be reached again.
 * @returns as it was set, also where others set or remove it meanwhile, and what has become of it in the cycle of a moment
 */
export function setBudget(
  ledger: Ledger,
  organizationId: string,
  { amount, notices, hardCap }: BudgetSettings,
  now: Date,
): Promise<Budget> {
  const sorted = notices.toSorted((a, b) => a - b);
  return ledger.transaction().execute(async (transaction) => {
    // The row stays locked until the end, also where it is as wanted.
    await sql`
      insert into budgets as b (organization_id, amount, notices, hard_cap)
      values (${organizationId}, ${amount}::numeric, ${sorted}::integer[], ${hardCap})
      on conflict (organization_id) do update set amount = excluded.amount, notices = excluded.notices,
        hard_cap = excluded.hard_cap, updated_at = now(),
        revision = case b.amount when excluded.amount then b.revision else excluded.revision end,
        revised_at = case b.amount when excluded.amount then b.revised_at else now() end
      where (b.amount, b.notices, b.hard_cap) is distinct from (excluded.amount, excluded.notices, excluded.hard_cap)`.execute(
      transaction,
    );
    const budget = await findBudget(transaction, organizationId, now);
    if (budget === undefined) {
      throw new Error("a budget that was set does not exist");
    }
    return budget;
  });
}

/** An organization's budget, and what has become of it in the cycle of a moment. */
export async function findBudget(
  ledger: Ledger,
  organizationId: string,
  now: Date,
): Promise<Budget | undefined> {
  const cycle = sql`${cycleDay(now)}::date`;
  const { rows } = await sql<{
    amount: string;
    notices: number[];
    hard_cap: boolean;
    created_at: Date;
    updated_at: Date;
    spent: string;
    reached: { threshold: number; at: string }[];
  }>`
    select trim_scale(b.amount)::text as amount, b.notices, b.hard_cap, b.created_at, b.updated_at,
      trim_scale(${spentIn(sql`b.organization_id`, cycle)})::text as spent,
      (select coalesce(json_agg(json_build_object('threshold', c.threshold, 'at', c.reached_at) order by c.threshold), '[]')
        from budget_crossings c
        where c.organization_id = b.organization_id and c.cycle_start = ${cycle} and c.revision = b.revision) as reached
    from budgets b where b.organization_id = ${organizationId}`.execute(ledger);
  const [row] = rows;
  return (
    row && {
      amount: row.amount,
      notices: row.notices,
      hardCap: row.hard_cap,
      spent: row.spent,
      reached: row.reached.map(({ threshold, at }) => ({ threshold, at: new Date(at) })),
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }
  );
}

/** @returns whether there was one */
export async function deleteBudget(ledger: Ledger, organizationId: string): Promise<boolean> {
  const { numAffectedRows = 0n } =
    await sql`delete from budgets where organization_id = ${organizationId}`.execute(ledger);
  return numAffectedRows > 0n;
}

/** Condition of a budget `b` with a hard cap that the cycle's charges have reached. */
const isExhausted = (now: Date) => sql`b.hard_cap
  and ${spentIn(sql`b.organization_id`, sql`${cycleDay(now)}::date`)} >= b.amount`;

/** Whether the organization has a budget with a hard cap that the charges of the cycle have reached. */
export async function isBudgetExhausted(ledger: Ledger, organizationId: string, now: Date): Promise<boolean> {
  const found = await ledger
    .selectFrom("budgets as b")
    .select(sql<boolean>`${isExhausted(now)}`.as("exhausted"))
    .where("b.organization_id", "=", organizationId)
    .executeTakeFirst();
  return found?.exhausted ?? false;
}

/** One page of organizations, in the order of their ids. */
export interface BudgetPage {
  /** The last one of the page before; empty for the first. */
  after: string;
  limit: number;
}

/** Organizations of one page of budgets, or of those with a hard cap alone. Fewer than the limit: the last page. */
export async function listBudgets(
  ledger: Ledger,
  { after, limit }: BudgetPage,
  { hardCap = false }: { hardCap?: boolean } = {},
): Promise<string[]> {
  const rows = await ledger
    .selectFrom("budgets")
    .select("organization_id")
    .where("organization_id", ">", after)
    .$if(hardCap, (query) => query.where("hard_cap", "=", true))
    .orderBy("organization_id")
    .limit(limit)
    .execute();
  return rows.map(({ organization_id: id }) => id);
}

/** Of some organizations, those with a budget with a hard cap that the cycle's charges have reached. */
export async function listExhaustedBudgets(
  ledger: Ledger,
  now: Date,
  organizationIds: readonly string[],
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select b.organization_id as id from budgets b
    where b.organization_id = any (${organizationIds}::text[]) and ${isExhausted(now)}
    order by b.organization_id`.execute(ledger);
  return rows.map(({ id }) => id);
}
