import { billingCycle, type PlanCharge, type PlanPrices, type PriceList } from "@slipway/crds";
import { sql } from "kysely";
import type { BillableProject } from "./billable-changes.ts";
import type { Ledger } from "./connect.ts";

/** Charges of plans: docs/billing.md. They follow from what is recorded of a project, and from prices by date. */

/** The final charges of a project in a window, which begins where the one before ended. */
export interface MeteredWindow extends BillableProject {
  /** All charges that were final before are among these, or were recorded with earlier windows. */
  until: Date;
  /** Nothing can follow. */
  ended: boolean;
  charges: readonly PlanCharge[];
}

/** Up to when a project's charges are recorded; undefined: none are yet. */
export interface MeteredProject extends BillableProject {
  until: Date | undefined;
}

export interface RecordedPlanCharges {
  recorded: number;
  /** Keys that the ledger has with other values: those stay. */
  differing: string[];
}

/** Projects whose charges are not all recorded. */
export async function projectsToMeter(ledger: Ledger): Promise<MeteredProject[]> {
  const { rows } = await sql<{
    organization_id: string;
    project_id: string;
    project_uid: string;
    metered_until: Date | null;
  }>`
    select organization_id, project_id, project_uid, metered_until from plan_meters where not ended
    order by project_uid`.execute(ledger);
  return rows.map((row) => ({
    organizationId: row.organization_id,
    projectId: row.project_id,
    projectUid: row.project_uid,
    until: row.metered_until ?? undefined,
  }));
}

/**
 * Records the charges of windows, and that they are recorded: both, or neither. Those that are there stay as they are.
 * @throws when the database is away or the answer was lost, or when a charge breaks a rule of the ledger: nothing is recorded then
 */
export async function recordPlanCharges(
  ledger: Ledger,
  windows: readonly MeteredWindow[],
): Promise<RecordedPlanCharges> {
  const given = JSON.stringify(windows.flatMap((window) => window.charges.map((one) => rowOf(window, one))));
  const meters = JSON.stringify(
    windows.map(({ organizationId, projectId, projectUid, until, ended }) => ({
      organization_id: organizationId,
      project_id: projectId,
      project_uid: projectUid,
      metered_until: until,
      ended,
    })),
  );
  const source = sql`json_populate_recordset(null::plan_charges, ${given})`;
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      const { rows: inserted } = await sql<{ key: string }>`
        insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start,
          plan, instance, gb, price, amount)
        select organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan, instance, gb,
          price, amount
        from ${source} order by key on conflict do nothing returning key`.execute(transaction);
      const { rows: differing } = await sql<{ key: string }>`
        select c.key from ${source} g join plan_charges c using (key)
        where (c.amount, c.price, c.starts_at, c.plan) is distinct from (g.amount, g.price, g.starts_at, g.plan)`.execute(
        transaction,
      );
      await sql`
        insert into plan_meters (organization_id, project_id, project_uid, metered_until, ended)
        select organization_id, project_id, project_uid, metered_until, ended from json_populate_recordset(null::plan_meters, ${meters})
        order by project_uid
        on conflict (project_uid) do update set
          metered_until = greatest(plan_meters.metered_until, excluded.metered_until),
          ended = plan_meters.ended or excluded.ended`.execute(transaction);
      return { recorded: inserted.length, differing: differing.map(({ key }) => key) };
    });
}

function rowOf({ organizationId, projectId, projectUid }: BillableProject, charge: PlanCharge) {
  const { key, kind, from, to, finalAt, plan, instance, gb, price, amount } = charge;
  return {
    organization_id: organizationId,
    project_id: projectId,
    project_uid: projectUid,
    key,
    kind,
    starts_at: new Date(from),
    ends_at: new Date(to),
    final_at: new Date(finalAt),
    cycle_start: billingCycle(new Date(from)).startedAt.toISOString().slice(0, 10),
    plan: plan ?? null,
    instance: instance ?? null,
    gb: gb ?? null,
    price,
    amount,
  };
}

/** Prices by date, oldest first. */
export async function listPrices(ledger: Ledger): Promise<PriceList[]> {
  const { rows } = await sql<{ from_at: Date; plans: Record<string, PlanPrices>; gb_hour: string }>`
    select from_at, plans, gb_hour from price_lists order by from_at`.execute(ledger);
  return rows.map(({ from_at, plans, gb_hour }) => ({ from: from_at.getTime(), plans, gbHour: gb_hour }));
}

/**
 * Records prices that are in force from now on, where they are others than the last ones.
 * @returns whether they were
 */
export async function recordPrices(ledger: Ledger, list: PriceList): Promise<boolean> {
  const plans = JSON.stringify(list.plans);
  const { numAffectedRows = 0n } = await sql`
    insert into price_lists (from_at, plans, gb_hour)
    select ${new Date(list.from)}::timestamptz, ${plans}::jsonb, ${list.gbHour}::text
    where not exists (select from (select * from price_lists order by from_at desc limit 1) l
      where l.plans = ${plans}::jsonb and l.gb_hour = ${list.gbHour}::text)`.execute(ledger);
  return numAffectedRows > 0n;
}
