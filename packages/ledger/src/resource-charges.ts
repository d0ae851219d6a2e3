import { billingCycle, buildCharge, type ResourceCharge } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { listPrices } from "./plan-charges.ts";

/** Charges of what projects use beside their plans: docs/billing.md. They follow from facts in the ledger, and from prices by date. */

/** A charge is recorded so long after its fact: prices that were in force then are in the ledger by now. */
const LAG_MINUTES = 10;
/** Facts of one transaction. */
const BATCH = 500;

interface EndedBuildRow {
  organization_id: string;
  project_id: string;
  project_uid: string;
  build_id: string;
  started_at: Date;
  finished_at: Date;
  error_code: string | null;
}

/** What was dealt with in one transaction. */
export interface ChargedResources {
  /** Charges that are recorded. */
  recorded: number;
  /** Whether there may be more to deal with. */
  isMore: boolean;
}

/**
 * Charges builds that ended, the oldest first, and drops the notes of them: both, or neither. Several processes deal with others each, and what one
 * has recorded no other one does.
 * @throws when the database is away or the answer was lost, or when a charge breaks a rule of the ledger: nothing is recorded then
 */
export async function chargeBuilds(ledger: Ledger, batch = BATCH): Promise<ChargedResources> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      const { rows } = await sql<EndedBuildRow>`
        select * from ended_builds where finished_at < now() - make_interval(mins => ${LAG_MINUTES})
        order by finished_at, organization_id, project_id, build_id limit ${batch} for update skip locked`.execute(
        transaction,
      );
      if (rows.length === 0) {
        return { recorded: 0, isMore: false };
      }
      const lists = await listPrices(transaction);
      const charges = rows.flatMap((row) => {
        const charge = buildCharge(
          {
            projectUid: row.project_uid,
            buildId: row.build_id,
            startedAt: row.started_at.getTime(),
            finishedAt: row.finished_at.getTime(),
            errorCode: row.error_code ?? undefined,
          },
          lists,
        );
        return charge === undefined ? [] : [chargeRow(row, charge)];
      });
      const recorded = await insertCharges(transaction, charges);
      await sql`
        delete from ended_builds using json_populate_recordset(null::ended_builds, ${JSON.stringify(rows)}) d
        where (ended_builds.organization_id, ended_builds.project_id, ended_builds.build_id)
          = (d.organization_id, d.project_id, d.build_id)`.execute(transaction);
      return { recorded, isMore: rows.length === batch };
    });
}

type Owner = Pick<EndedBuildRow, "organization_id" | "project_id" | "project_uid">;

function chargeRow({ organization_id, project_id, project_uid }: Owner, charge: ResourceCharge) {
  const from = new Date(charge.from);
  return {
    organization_id,
    project_id,
    project_uid,
    key: charge.key,
    kind: charge.kind,
    starts_at: from,
    ends_at: new Date(charge.to),
    final_at: new Date(charge.finalAt),
    cycle_start: billingCycle(from).startedAt.toISOString().slice(0, 10),
    quantity: charge.quantity,
    price: charge.price,
    amount: charge.amount,
  };
}

/** @returns how many were not there */
async function insertCharges(ledger: Ledger, rows: readonly ReturnType<typeof chargeRow>[]): Promise<number> {
  if (rows.length === 0) {
    return 0;
  }
  const { numAffectedRows = 0n } = await sql`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start,
      quantity, price, amount)
    select organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, quantity, price, amount
    from json_populate_recordset(null::plan_charges, ${JSON.stringify(rows)}) order by key on conflict do nothing`.execute(
    ledger,
  );
  return Number(numAffectedRows);
}

/**
 * Drops notes of builds that ended before a moment: those of a platform that charges no plans any more.
 * @returns how many
 */
export async function retireEndedBuilds(ledger: Ledger, before: Date): Promise<number> {
  const { numAffectedRows = 0n } = await sql`delete from ended_builds where finished_at < ${before}`.execute(
    ledger,
  );
  return Number(numAffectedRows);
}
