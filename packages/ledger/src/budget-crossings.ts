import { billingCycle } from "@slipway/crds";
import { type RawBuilder, sql } from "kysely";
import { cycleDay, EXHAUSTED_PERCENT, spentIn } from "./budgets.ts";
import type { Ledger } from "./connect.ts";
import type { NotificationEvent } from "./notification-event.ts";
import { recordOwnEvents } from "./webhook-events.ts";

/** Records which thresholds of budgets were reached: each once in a cycle for an amount, in one transaction with its event. */

/** What is recorded of one organization in a cycle, whatever it sets its budget to. */
export const MAX_CROSSINGS = 100;
/** For so long after its end a cycle is compared, too: its last hours are charged in the next one. */
const LATE_MS = 86_400_000;

interface Crossing {
  organization_id: string;
  cycle: string;
  revision: string;
  threshold: number;
  amount: string;
  spent: string;
  hard_cap: boolean;
  reached_at: Date;
}

/** Of some organizations, those whose charges have reached what is not recorded. */
export async function listUnrecordedBudgets(
  ledger: Ledger,
  now: Date,
  organizationIds: readonly string[],
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct organization_id as id from (${reached(now, organizationIds)}) r order by 1`.execute(
    ledger,
  );
  return rows.map(({ id }) => id);
}

/** Thresholds of some budgets that charges have reached, in the cycle of a moment and in the one that has just ended, and are not recorded. */
function reached(now: Date, organizationIds: readonly string[]): RawBuilder<unknown> {
  const { startedAt } = billingCycle(now);
  const cycles = [cycleDay(now)];
  if (now.getTime() - startedAt.getTime() < LATE_MS) {
    cycles.push(cycleDay(new Date(startedAt.getTime() - 1)));
  }
  return sql`
    select b.organization_id, c.cycle, b.revision, t.threshold, b.amount, s.spent, b.hard_cap
    from budgets b
    cross join unnest(${cycles}::date[]) c (cycle)
    -- The sum itself, not a select of it: that would be summed again for each threshold.
    cross join lateral ${spentIn(sql`b.organization_id`, sql`c.cycle`)} s (spent)
    cross join lateral (
      select distinct threshold
      from unnest(b.notices || case when b.hard_cap then array[${EXHAUSTED_PERCENT}::integer] else '{}' end) n (threshold)
    ) t
    where b.organization_id = any (${organizationIds}::text[]) and s.spent * 100 >= b.amount * t.threshold
      -- What was charged before this amount was set in a cycle that had ended reached nothing.
      and b.revised_at < (c.cycle + interval '1 month') at time zone 'UTC'
      and not exists (
        select from budget_crossings r
        where (r.organization_id, r.cycle_start, r.revision, r.threshold) = (b.organization_id, c.cycle, b.revision, t.threshold))
      and (select count(*) from budget_crossings r
        where r.organization_id = b.organization_id and r.cycle_start = c.cycle) < ${MAX_CROSSINGS}`;
}

/**
 * Records what an organization's charges have reached and is not recorded, with its events, in one transaction. Nothing is written otherwise.
 * @returns how many were recorded
 */
export function recordBudgetCrossings(ledger: Ledger, now: Date, organizationId: string): Promise<number> {
  return ledger.transaction().execute(async (transaction) => {
    const { rows } = await sql<Crossing>`
      with due as (${reached(now, [organizationId])}), crossings as (
        insert into budget_crossings (organization_id, cycle_start, revision, threshold, amount, spent)
        select organization_id, cycle, revision, threshold, amount, spent from due
        order by organization_id, cycle, revision, threshold
        on conflict do nothing returning *
      )
      select c.organization_id, c.cycle_start::text as cycle, c.revision, c.threshold, trim_scale(c.amount)::text as amount,
        trim_scale(c.spent)::text as spent, due.hard_cap, c.reached_at
      from crossings c
      join due on (due.organization_id, due.cycle, due.revision, due.threshold)
        = (c.organization_id, c.cycle_start, c.revision, c.threshold)
      order by c.organization_id, c.cycle_start, c.threshold`.execute(transaction);
    await recordOwnEvents(transaction, rows.map(crossingEvent));
    return rows.length;
  });
}

/** The event of a threshold that was reached. Pure. */
function crossingEvent(crossing: Crossing): NotificationEvent {
  const { organization_id: organizationId, cycle, revision, threshold, amount, spent } = crossing;
  return {
    organizationId,
    projectId: null,
    type: "budget.reached",
    key: JSON.stringify([cycle, revision, threshold]),
    occurredAt: crossing.reached_at,
    data: {
      threshold,
      amount,
      spent,
      cycle_started_at: `${cycle}T00:00:00.000Z`,
      hard_cap: crossing.hard_cap,
    },
  };
}
