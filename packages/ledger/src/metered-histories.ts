import type { BillableCheckpoint, BillableHistory } from "@slipway/crds";
import { sql } from "kysely";
import { type ChangeRow, historyOf } from "./billable-changes.ts";
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
  const { noted, rows } = await ledger
    .transaction()
    .setIsolationLevel("repeatable read")
    .setAccessMode("read only")
    .execute(async (transaction) => ({
      // In a row of each project, and not of each change.
      noted: await sql<{ project_uid: string; checkpoint: BillableCheckpoint | null }>`
        select project_uid, checkpoint from plan_meters where project_uid = any (${projectUids}::text[])
        order by project_uid`.execute(transaction),
      rows: await sql<ChangeRow>`
        select c.* from plan_meters m cross join lateral (
          select * from billable_changes where project_uid = m.project_uid and number > coalesce(m.checkpoint_number, 0)
          order by number limit ${most + 1}) c
        where m.project_uid = any (${projectUids}::text[]) order by m.project_uid, c.number`.execute(
        transaction,
      ),
    }));
  const byUid = Map.groupBy(rows.rows, ({ project_uid }) => project_uid);
  return noted.rows.map(({ project_uid, checkpoint }) =>
    recentHistory(
      project_uid,
      { checkpoint: checkpoint ?? undefined, rows: byUid.get(project_uid) ?? [] },
      most,
    ),
  );
}

function recentHistory(
  projectUid: string,
  { checkpoint, rows }: { checkpoint: BillableCheckpoint | undefined; rows: readonly ChangeRow[] },
  most: number,
): MeteredHistory {
  const readUntil = rows.length > most ? rows.at(-1)?.at.getTime() : undefined;
  return {
    ...historyOf(projectUid, rows),
    ...(checkpoint ? { checkpoint } : {}),
    ...(readUntil === undefined ? {} : { readUntil }),
  };
}
