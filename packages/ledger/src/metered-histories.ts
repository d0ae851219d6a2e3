import type { BillableChange, BillableCheckpoint, BillableHistory } from "@slipway/crds";
import { sql } from "kysely";
import { type ChangeRow, changeOf } from "./billable-changes.ts";
import type { Ledger } from "./connect.ts";

/** Histories as the meter reads them: what came since the last charges, and a checkpoint of what was before. */
export interface MeteredHistory extends BillableHistory {
  /** In milliseconds, where there are more changes than were read: those have this instant or a later one. */
  readonly readUntil?: number;
}

/**
 * What is recorded of some projects since their checkpoints, in one snapshot.
 * @param most changes that are read of each
 */
export async function meteredHistories(
  ledger: Ledger,
  projectUids: readonly string[],
  most: number,
): Promise<MeteredHistory[]> {
  const { rows } = await sql<ChangeRow & { checkpoint: BillableCheckpoint | null; meter_uid: string }>`
    select m.project_uid as meter_uid, m.checkpoint, c.* from plan_meters m left join lateral (
      select * from billable_changes where project_uid = m.project_uid and number > coalesce(m.checkpoint_number, 0)
      order by number limit ${most + 1}) c on true
    where m.project_uid = any (${projectUids}::text[]) order by m.project_uid, c.number`.execute(ledger);
  return [...Map.groupBy(rows, ({ meter_uid }) => meter_uid)].map(([projectUid, own]) =>
    historyOf(projectUid, own, most),
  );
}

function historyOf(
  projectUid: string,
  rows: readonly (ChangeRow & { checkpoint: BillableCheckpoint | null })[],
  most: number,
): MeteredHistory {
  const checkpoint = rows[0]?.checkpoint ?? undefined;
  const changes: BillableChange[] = [];
  let deletedAt: number | undefined;
  for (const row of rows.filter(({ number }) => number !== null)) {
    const { at, state } = changeOf(row);
    if (state === undefined) {
      deletedAt = at.getTime();
    } else {
      changes.push({ ...state, at: at.getTime() });
    }
  }
  const readUntil = rows.length > most ? rows.at(-1)?.at.getTime() : undefined;
  return {
    projectUid,
    changes,
    ...(checkpoint ? { checkpoint } : {}),
    ...(deletedAt === undefined ? {} : { deletedAt }),
    ...(readUntil === undefined ? {} : { readUntil }),
  };
}
