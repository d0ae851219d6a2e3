import { billingCycle, buildCharge, type EndedBuild, type ResourceCharge } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { listPrices } from "./plan-charges.ts";
import { recordInParts } from "./refused-rows.ts";

/** Charges of what projects use beside their plans: docs/billing.md. They follow from facts in the ledger, and from prices by date. */

/** A charge is recorded so long after its fact was noted, by the ledger's clock: prices that were in force then are in the ledger by now. */
const LAG_MINUTES = 10;
/** Facts of one transaction. */
const BATCH = 500;
/** How long a build that ended waits to be charged, where plans are not metered any more. */
export const ENDED_BUILDS_DAYS = 90;
/** A charge that was refused is tried again after so long: what a clock ahead of the ledger's wrote is not ahead for ever. */
const REFUSED_HOURS = 24;

interface EndedBuildRow {
  organization_id: string;
  project_id: string;
  project_uid: string;
  build_id: string;
  ran_from: Date;
  ran_until: Date;
  error_code: string | null;
}

/** A build whose charge the ledger refused. */
export interface RefusedBuild {
  organizationId: string;
  projectId: string;
  buildId: string;
  /** The constraint, or what PostgreSQL says. */
  reason: string;
}

/** What was dealt with in one transaction. */
export interface ChargedResources {
  /** Charges that are recorded. */
  recorded: number;
  /** Keys of charges that the ledger has otherwise: those stay. */
  differing: string[];
  /** Their notes are kept. */
  refused: RefusedBuild[];
  /** Whether there may be more to deal with. */
  isMore: boolean;
}

/**
 * Charges builds that ended, the oldest first, and drops the notes of them: both, or neither. Several processes deal with others each, and what one
 * has recorded no other one does. A charge that breaks a rule of the ledger holds up no other one: its note is kept, and tried again after a day.
 * @throws when the database is away or the answer was lost: nothing is recorded then, or all of it
 */
export async function chargeBuilds(ledger: Ledger, batch = BATCH): Promise<ChargedResources> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      const { rows } = await sql<EndedBuildRow>`
        select * from ended_builds where noted_at < now() - make_interval(mins => ${LAG_MINUTES})
          and case when refused_at is null then noted_at >= now() - make_interval(days => ${ENDED_BUILDS_DAYS})
            else refused_at < now() - make_interval(hours => ${REFUSED_HOURS}) end
        order by noted_at, organization_id, project_id, build_id limit ${batch} for update skip locked`.execute(
        transaction,
      );
      if (rows.length === 0) {
        return { recorded: 0, differing: [], refused: [], isMore: false };
      }
      const lists = await listPrices(transaction);
      const charged = rows.flatMap((build) => {
        const charge = buildCharge(endedBuild(build), lists);
        return charge === undefined ? [] : [{ build, row: chargeRow(build, charge) }];
      });
      const refused = new Map<EndedBuildRow, string>();
      const parts = await recordInParts(charged, {
        record: (part) =>
          inSavepoint(transaction, () =>
            insertCharges(
              transaction,
              part.map(({ row }) => row),
            ),
          ),
        refused: ({ build }, { constraint, message }) => {
          refused.set(build, constraint ?? message);
          return { recorded: 0, differing: [] };
        },
      });
      await noteRefused(transaction, [...refused.keys()]);
      await dropNotes(
        transaction,
        rows.filter((row) => !refused.has(row)),
      );
      return {
        recorded: parts.reduce((sum, { recorded }) => sum + recorded, 0),
        differing: parts.flatMap(({ differing }) => differing),
        refused: [...refused].map(([build, reason]) => ({
          organizationId: build.organization_id,
          projectId: build.project_id,
          buildId: build.build_id,
          reason,
        })),
        isMore: rows.length === batch,
      };
    });
}

const endedBuild = (row: EndedBuildRow): EndedBuild => ({
  projectUid: row.project_uid,
  buildId: row.build_id,
  ranFrom: row.ran_from.getTime(),
  ranUntil: row.ran_until.getTime(),
  errorCode: row.error_code ?? undefined,
});

const isNoteOf = (rows: readonly EndedBuildRow[]) => sql`
  (ended_builds.organization_id, ended_builds.project_id, ended_builds.build_id) in (
    select organization_id, project_id, build_id from json_populate_recordset(null::ended_builds, ${JSON.stringify(rows)}))`;

async function noteRefused(ledger: Ledger, rows: readonly EndedBuildRow[]): Promise<void> {
  if (rows.length > 0) {
    await sql`update ended_builds set refused_at = now() where ${isNoteOf(rows)}`.execute(ledger);
  }
}

async function dropNotes(ledger: Ledger, rows: readonly EndedBuildRow[]): Promise<void> {
  if (rows.length > 0) {
    await sql`delete from ended_builds where ${isNoteOf(rows)}`.execute(ledger);
  }
}

/** Does a part of a transaction as a whole, or nothing of it. */
async function inSavepoint<T>(ledger: Ledger, work: () => Promise<T>): Promise<T> {
  await sql`savepoint charges`.execute(ledger);
  try {
    const result = await work();
    await sql`release savepoint charges`.execute(ledger);
    return result;
  } catch (error) {
    await sql`rollback to savepoint charges; release savepoint charges`.execute(ledger);
    throw error;
  }
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

type Inserted = Pick<ChargedResources, "recorded" | "differing">;

async function insertCharges(
  ledger: Ledger,
  rows: readonly ReturnType<typeof chargeRow>[],
): Promise<Inserted> {
  if (rows.length === 0) {
    return { recorded: 0, differing: [] };
  }
  const given = JSON.stringify(rows);
  const { numAffectedRows = 0n } = await sql`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start,
      quantity, price, amount)
    select organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, quantity, price, amount
    from json_populate_recordset(null::plan_charges, ${given}) order by key on conflict do nothing`.execute(
    ledger,
  );
  const recorded = Number(numAffectedRows);
  if (recorded === rows.length) {
    return { recorded, differing: [] };
  }
  // Of what another process has recorded meanwhile only a statement of its own sees the row.
  const { rows: differing } = await sql<{ key: string }>`
    select g.key from json_populate_recordset(null::plan_charges, ${given}) g join plan_charges c using (key)
    where (c.organization_id, c.project_id, c.starts_at, c.ends_at, c.quantity, c.price, c.amount)
      is distinct from (g.organization_id, g.project_id, g.starts_at, g.ends_at, g.quantity, g.price, g.amount)
    order by g.key`.execute(ledger);
  return { recorded, differing: differing.map(({ key }) => key) };
}

/**
 * Drops notes that are too old to be charged. One whose charge was refused is kept: it is tried again.
 * @returns how many
 */
export async function retireEndedBuilds(ledger: Ledger, now: Date): Promise<number> {
  const before = new Date(now.getTime() - ENDED_BUILDS_DAYS * 86_400_000);
  const { numAffectedRows = 0n } = await sql`
    delete from ended_builds where noted_at < ${before} and refused_at is null`.execute(ledger);
  return Number(numAffectedRows);
}
