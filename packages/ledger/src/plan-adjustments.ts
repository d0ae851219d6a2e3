import type { BillableCheckpoint, PlanAdjustment, PlanChargeKind, RecordedPlanCharge } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { insertCharges, type MeteredProject, noteCheckpoints, rowOf } from "./plan-charges.ts";

/** Charges of plans after a change that came late: docs/billing.md#late-changes. */

/** What late changes make a project's facts cost more or less: all of it, as its history and its charges were read. */
export interface AdjustedProject extends MeteredProject {
  until: Date;
  late: NonNullable<MeteredProject["late"]>;
  /** Nothing can follow: the history ends before `until`. */
  ended: boolean;
  charges: readonly PlanAdjustment[];
  /** What the history up to `until` comes to; undefined: there is none. */
  checkpoint?: BillableCheckpoint | undefined;
}

/** Rows of one statement. */
const MAX_ROWS = 2_000;

interface Row {
  key: string;
  kind: PlanChargeKind;
  starts_at: Date;
  ends_at: Date;
  final_at: Date;
  plan: string | null;
  instance: number | null;
  gb: number | null;
  price: string;
  amount: string;
  adjusts: string | null;
}

/**
 * What is recorded of a project's plan and storage, adjustments too, oldest first: all of its terms and credits, and the hours that ended at an instant or later.
 * Keys of a project begin with its uid: they are found by them.
 */
export async function recordedPlanCharges(
  ledger: Ledger,
  projectUid: string,
  hoursSince: Date,
): Promise<RecordedPlanCharge[]> {
  const { rows } = await sql<Row>`
    select key, kind, starts_at, ends_at, final_at, plan, instance, gb, trim_scale(price)::text as price,
      trim_scale(amount)::text as amount, adjusts
    from plan_charges where key >= ${`${projectUid}/`} and key < ${`${projectUid}0`} and quantity is null
      and (split_part(coalesce(adjusts, key), '/', 2) not in ('instance_hour', 'storage_hour') or ends_at >= ${hoursSince})
    order by late_at nulls first, key`.execute(ledger);
  return rows.map((row) => ({
    key: row.key,
    kind: row.kind,
    from: row.starts_at.getTime(),
    to: row.ends_at.getTime(),
    finalAt: row.final_at.getTime(),
    ...(row.plan === null ? {} : { plan: row.plan }),
    ...(row.instance === null ? {} : { instance: row.instance }),
    ...(row.gb === null ? {} : { gb: row.gb }),
    price: row.price,
    amount: row.amount,
    ...(row.adjusts === null ? {} : { adjusts: row.adjusts }),
  }));
}

/**
 * Records adjustments, and that the late changes are dealt with: both, or neither.
 * @returns how many; undefined where another late change has come, or charges were recorded, since they were computed
 * @throws when the database is away or the answer was lost, or when one breaks a rule of the ledger: nothing is recorded then
 */
export async function recordPlanAdjustments(
  ledger: Ledger,
  project: AdjustedProject,
): Promise<number | undefined> {
  const { projectUid, until, late, ended, charges } = project;
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      const { rows } = await sql`
        select from plan_meters where project_uid = ${projectUid} and metered_until = ${until}
          and late_arrival = ${late.arrival} and adjustments = ${late.pass} and late_from = ${late.from} for update`.execute(
        transaction,
      );
      if (rows.length === 0) {
        return undefined;
      }
      // Under the lock, so that none is of a cycle that was over before it is recorded.
      const { rows: now } = await sql<{ at: Date }>`
        select date_trunc('milliseconds', clock_timestamp()) as at`.execute(transaction);
      const { at } = now[0] as { at: Date };
      const given = charges.map((one) => rowOf(project, one, { adjusts: one.adjusts, at }));
      let recorded = 0;
      for (let start = 0; start < given.length; start += MAX_ROWS) {
        recorded += (await insertCharges(transaction, given.slice(start, start + MAX_ROWS))).length;
      }
      await sql`
        update plan_meters set late_from = null, late_arrival = null, adjustments = adjustments + 1, ended = ended or ${ended}
        where project_uid = ${projectUid}`.execute(transaction);
      await noteCheckpoints(transaction, [project]);
      return recorded;
    });
}
