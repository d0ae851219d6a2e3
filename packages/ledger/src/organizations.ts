import type { Ledger } from "./connect.ts";
import type { Organization } from "./schema.ts";

/** Adds an organization. @throws when the id exists or does not match the id pattern */
export async function insertOrganization(ledger: Ledger, row: { id: string; name: string }): Promise<void> {
  await ledger.insertInto("organizations").values(row).execute();
}

/** Every organization, oldest first: the operator makes a namespace for each. */
export async function listOrganizations(ledger: Ledger): Promise<Organization[]> {
  return ledger.selectFrom("organizations").selectAll().orderBy("created_at").orderBy("id").execute();
}

export async function findOrganization(ledger: Ledger, id: string): Promise<Organization | undefined> {
  return ledger.selectFrom("organizations").selectAll().where("id", "=", id).executeTakeFirst();
}

/** @returns false when there is no such organization */
export async function setOrganizationBlocked(ledger: Ledger, id: string, blocked: boolean): Promise<boolean> {
  const result = await ledger
    .updateTable("organizations")
    .set({ blocked })
    .where("id", "=", id)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}
