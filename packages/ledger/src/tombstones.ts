import type { Ledger } from "./connect.ts";

/** Remembers that a project was deleted, so that deleting it again is told from a project that never was. */
export async function insertTombstone(
  ledger: Ledger,
  organizationId: string,
  projectId: string,
): Promise<void> {
  await ledger
    .insertInto("project_tombstones")
    .values({ organization_id: organizationId, project_id: projectId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export async function hasTombstone(
  ledger: Ledger,
  organizationId: string,
  projectId: string,
): Promise<boolean> {
  const row = await ledger
    .selectFrom("project_tombstones")
    .select("project_id")
    .where("organization_id", "=", organizationId)
    .where("project_id", "=", projectId)
    .executeTakeFirst();
  return row !== undefined;
}
