import {
  type BillableCheckpoint,
  billingCycle,
  type PlanCharge,
  type PlanPrices,
  type PriceList,
} from "@slipway/crds";
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
  /** What {@link MeteredProject} had before the history was read. */
  arrivals: number;
  /** What the history up to the end comes to; undefined: the one that there is stays. */
  checkpoint?: BillableCheckpoint | undefined;
  charges: readonly PlanCharge[];
}

export interface MeteredProject extends BillableProject {
  /** Up to when its charges are recorded; undefined: none are yet. */
  until: Date | undefined;
  /** How many changes came, in whatever order: a window is recorded only if none of its time has come since. */
  arrivals: number;
  /** Where some came after charges of their time. */
  late: LateChanges | undefined;
}

/** Changes of a project for which its recorded charges are still to be adjusted. */
export interface LateChanges {
  /** The earliest one's instant: hours that ended before are as they were. */
  from: Date;
  /** Which one came last. */
  arrival: number;
  /** How often the project was adjusted before. */
  pass: number;
}

export interface RecordedPlanCharges {
  recorded: number;
  /** Keys that the ledger has with other values: those stay. */
  differing: string[];
  /** Uids whose windows were left out, since a change of their time has come or is being recorded: they are to be computed again. */
  stale: string[];
}

/** Projects whose charges are not all recorded, or not all as they should be. */
export async function projectsToMeter(ledger: Ledger): Promise<MeteredProject[]> {
  const { rows } = await sql<MeterRow>`
    select organization_id, project_id, project_uid, metered_until, arrivals, late_from, late_arrival, adjustments
    from plan_meters where not ended or late_from is not null order by project_uid`.execute(ledger);
  return rows.map((row) => ({
    organizationId: row.organization_id,
    projectId: row.project_id,
    projectUid: row.project_uid,
    until: row.metered_until ?? undefined,
    arrivals: Number(row.arrivals),
    late: lateOf(row),
  }));
}

interface MeterRow {
  organization_id: string;
  project_id: string;
  project_uid: string;
  metered_until: Date | null;
  arrivals: string;
  late_from: Date | null;
  late_arrival: string | null;
  adjustments: number;
}

const lateOf = ({ late_from, late_arrival, adjustments }: MeterRow): LateChanges | undefined =>
  late_from === null ? undefined : { from: late_from, arrival: Number(late_arrival), pass: adjustments };

/**
 * Records the charges of windows, and that they are recorded: both, or neither. Those that are there stay as they are. A window is left out where
 * a change of its time has come since its history was read, or another process has locked its project.
 * @throws when the database is away or the answer was lost, or when a charge breaks a rule of the ledger: nothing is recorded then
 */
export async function recordPlanCharges(
  ledger: Ledger,
  windows: readonly MeteredWindow[],
): Promise<RecordedPlanCharges> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      const stale = await lockMeters(transaction, windows);
      const current = windows.filter(({ projectUid }) => !stale.includes(projectUid));
      const rows = current.flatMap((window) => window.charges.map((one) => rowOf(window, one)));
      const inserted = await insertCharges(transaction, rows);
      const differing = await differingCharges(transaction, rows, inserted);
      await advanceMeters(transaction, current);
      return { recorded: inserted.length, differing, stale };
    });
}

/**
 * Locks what says up to when projects are metered, which changes that come also lock. It waits for none: what another process has locked it may change.
 * @returns uids that another process has locked, or of which a change of the window's time has come since
 */
async function lockMeters(ledger: Ledger, windows: readonly MeteredWindow[]): Promise<string[]> {
  const given = JSON.stringify(windows.map(meterOf));
  const uids = windows.map(({ projectUid }) => projectUid);
  const { rows: locked } = await sql<{ project_uid: string }>`
    with locked as materialized (
      select project_uid from plan_meters where project_uid = any (${uids}::text[]) order by project_uid for update skip locked
    )
    select project_uid from plan_meters where project_uid = any (${uids}::text[])
      and project_uid not in (select project_uid from locked)`.execute(ledger);
  const { rows: changed } = await sql<{ project_uid: string }>`
    select distinct project_uid from json_populate_recordset(null::plan_meters, ${given}) m
    join billable_changes c using (project_uid) where c.arrival > m.arrivals and c.at < m.metered_until`.execute(
    ledger,
  );
  return [...new Set([...locked, ...changed].map(({ project_uid }) => project_uid))];
}

const meterOf = (window: MeteredWindow) => ({
  organization_id: window.organizationId,
  project_id: window.projectId,
  project_uid: window.projectUid,
  metered_until: window.until,
  ended: window.ended,
  arrivals: window.arrivals,
});

/** Notes up to when projects are metered, with a checkpoint of that time unless another process is further, or a late change waits. */
async function advanceMeters(ledger: Ledger, windows: readonly MeteredWindow[]): Promise<void> {
  await sql`
    insert into plan_meters as m (organization_id, project_id, project_uid, metered_until, ended)
    select organization_id, project_id, project_uid, metered_until, ended
    from json_populate_recordset(null::plan_meters, ${JSON.stringify(windows.map(meterOf))})
    order by project_uid
    on conflict (project_uid) do update set
      metered_until = greatest(m.metered_until, excluded.metered_until),
      ended = m.ended or excluded.ended`.execute(ledger);
  await noteCheckpoints(ledger, windows);
}

/** @internal Notes checkpoints of projects that are metered up to their instants, and of which no late change waits. */
export async function noteCheckpoints(
  ledger: Ledger,
  windows: readonly Pick<MeteredWindow, "projectUid" | "until" | "checkpoint">[],
): Promise<void> {
  const checkpoints = windows.flatMap(({ projectUid, until, checkpoint }) =>
    checkpoint
      ? [{ project_uid: projectUid, metered_until: until, checkpoint, starts_at: new Date(checkpoint.at) }]
      : [],
  );
  await sql`
    update plan_meters m set checkpoint = g.checkpoint, checkpoint_number = (
      select number from billable_changes c where c.project_uid = m.project_uid and c.at < g.starts_at order by number desc limit 1)
    from json_to_recordset(${JSON.stringify(checkpoints)})
      as g (project_uid text, metered_until timestamptz, checkpoint jsonb, starts_at timestamptz)
    where m.project_uid = g.project_uid and m.metered_until = g.metered_until and m.late_from is null
      and m.checkpoint is distinct from g.checkpoint`.execute(ledger);
}

type ChargeRow = ReturnType<typeof rowOf>;

/** @internal @returns the keys of those that were not there */
export async function insertCharges(ledger: Ledger, given: readonly ChargeRow[]): Promise<string[]> {
  const { rows } = await sql<{ key: string }>`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start,
      plan, instance, gb, price, amount, adjusts, late_at)
    select organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan, instance, gb,
      price, amount, adjusts, late_at
    from json_populate_recordset(null::plan_charges, ${JSON.stringify(given)}) order by key on conflict do nothing returning key`.execute(
    ledger,
  );
  return rows.map(({ key }) => key);
}

/**
 * Charges that the ledger has otherwise. Those of a project that was adjusted before, or waits for it, are adjusted again instead: a late change may
 * have moved a fact to an instant beyond what was metered then, or have taken back one that is there as it was.
 */
async function differingCharges(
  ledger: Ledger,
  given: readonly ChargeRow[],
  inserted: readonly string[],
): Promise<string[]> {
  const isNew = new Set(inserted);
  const there = given.filter(({ key }) => !isNew.has(key));
  if (there.length === 0) {
    return [];
  }
  // Keys of what adjusts begin so: they are found by them.
  const { rows } = await sql<{ key: string; project_uid: string; since: Date; differs: boolean }>`
    with given as (select * from json_populate_recordset(null::plan_charges, ${JSON.stringify(there)})),
    adjusted as (
      select distinct a.adjusts as key from (select distinct project_uid from given) p
      cross join unnest(array['instance_hour', 'storage_hour', 'term', 'credit']) as f (kind)
      join plan_charges a on a.key >= (p.project_uid || '/' || f.kind || '/late/') collate "C"
        and a.key < (p.project_uid || '/' || f.kind || '/late0') collate "C"
    ),
    found as (
      select g.key, g.project_uid, least(g.starts_at, c.starts_at) as since,
        (c.amount, c.price, c.starts_at, c.plan) is distinct from (g.amount, g.price, g.starts_at, g.plan) as differs
      from given g join plan_charges c using (key)
    )
    select * from found where differs or key in (select key from adjusted)`.execute(ledger);
  if (rows.length === 0) {
    return [];
  }
  const { rows: late } = await sql<{ project_uid: string }>`
    update plan_meters m set late_from = least(m.late_from, g.since), late_arrival = m.arrivals
    from (select project_uid, min(since) as since
      from json_to_recordset(${JSON.stringify(rows)}) as f (project_uid text, since timestamptz) group by project_uid) g
    where m.project_uid = g.project_uid and (m.adjustments > 0 or m.late_from is not null) returning m.project_uid`.execute(
    ledger,
  );
  const isLate = new Set(late.map(({ project_uid }) => project_uid));
  return rows.filter(({ project_uid, differs }) => differs && !isLate.has(project_uid)).map(({ key }) => key);
}

export function rowOf(
  { organizationId, projectId, projectUid }: BillableProject,
  charge: PlanCharge,
  late?: { adjusts: string; at: Date },
) {
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
    cycle_start: billingCycle(late?.at ?? new Date(from))
      .startedAt.toISOString()
      .slice(0, 10),
    plan: plan ?? null,
    instance: instance ?? null,
    gb: gb ?? null,
    price,
    amount,
    adjusts: late?.adjusts ?? null,
    late_at: late?.at ?? null,
  };
}

/** Prices by date, oldest first. */
export async function listPrices(ledger: Ledger): Promise<PriceList[]> {
  const { rows } = await sql<{
    from_at: Date;
    plans: Record<string, PlanPrices>;
    gb_hour: string;
    resources: NonNullable<PriceList["resources"]>;
  }>`select from_at, plans, gb_hour, resources from price_lists order by from_at`.execute(ledger);
  return rows.map(({ from_at, plans, gb_hour, resources }) => ({
    from: from_at.getTime(),
    plans,
    gbHour: gb_hour,
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
  }));
}

/**
 * Records prices that are in force from now on, where they are others than the last ones.
 * @returns whether they were
 */
export async function recordPrices(ledger: Ledger, list: PriceList): Promise<boolean> {
  const plans = JSON.stringify(list.plans);
  const resources = JSON.stringify(list.resources ?? {});
  const { numAffectedRows = 0n } = await sql`
    insert into price_lists (from_at, plans, gb_hour, resources)
    select ${new Date(list.from)}::timestamptz, ${plans}::jsonb, ${list.gbHour}::text, ${resources}::jsonb
    where not exists (select from (select * from price_lists order by from_at desc limit 1) l
      where l.plans = ${plans}::jsonb and l.gb_hour = ${list.gbHour}::text and l.resources = ${resources}::jsonb)`.execute(
    ledger,
  );
  return numAffectedRows > 0n;
}
