import type { Ledger } from "./connect.ts";

/** Names a build. */
export interface BuildKey {
  organizationId: string;
  projectId: string;
  id: string;
}

/** One line of a build's log. */
export interface BuildLogChunk {
  /** Greater than that of every line before it; another read of the build's output results in the same. */
  sequence: number;
  at: Date;
  level: string;
  step: string;
  message: string;
  /** Whether it is the last one that there will be. */
  final: boolean;
}

/** Most lines of one statement: each has nine parameters, and PostgreSQL takes 65,535. */
const MAX_BATCH = 1_000;

/**
 * Keeps lines of a log. A stored line stays as it is, so lines that were read again are simply sent again.
 * @returns how many are new
 * @throws when the database is away, or there is no such build
 */
export async function recordBuildLog(
  ledger: Ledger,
  { organizationId, projectId, id }: BuildKey,
  chunks: readonly BuildLogChunk[],
): Promise<number> {
  let added = 0;
  for (let start = 0; start < chunks.length; start += MAX_BATCH) {
    const { numInsertedOrUpdatedRows = 0n } = await ledger
      .insertInto("build_log_chunks")
      .values(
        chunks.slice(start, start + MAX_BATCH).map((chunk) => ({
          organization_id: organizationId,
          project_id: projectId,
          build_id: id,
          ...chunk,
        })),
      )
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow();
    added += Number(numInsertedOrUpdatedRows);
  }
  return added;
}

/** Lines of a build's log after `cursor`, a sequence, in their order; at most `limit`. */
export async function readBuildLog(
  ledger: Ledger,
  { organizationId, projectId, id }: BuildKey,
  { cursor, limit }: { cursor: number; limit: number },
): Promise<BuildLogChunk[]> {
  const rows = await ledger
    .selectFrom("build_log_chunks")
    .select(["sequence", "at", "level", "step", "message", "final"])
    .where("organization_id", "=", organizationId)
    .where("project_id", "=", projectId)
    .where("build_id", "=", id)
    .where("sequence", ">", String(cursor))
    .orderBy("sequence")
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, sequence: Number(row.sequence) }));
}
