import { jsonArrayFrom } from "kysely/helpers/postgres";
import type { Ledger } from "./connect.ts";
import { type Grant, insertGrants } from "./organizations.ts";

export interface NewApiKey {
  id: string;
  organizationId: string;
  prefix: string;
  /** SHA-256 of the whole key, 32 bytes. */
  sha256: Buffer;
  grants: readonly Grant[];
}

/** A key that is not revoked, with what it may do. */
export interface ApiKeyRecord {
  id: string;
  organizationId: string;
  sha256: Buffer;
  grants: Grant[];
}

/** Stores a key and its grants, both or neither. */
export async function insertApiKey(ledger: Ledger, key: NewApiKey): Promise<void> {
  await ledger.transaction().execute(async (transaction) => {
    await transaction
      .insertInto("api_keys")
      .values({ id: key.id, organization_id: key.organizationId, prefix: key.prefix, sha256: key.sha256 })
      .execute();
    await insertGrants(transaction, { organizationId: key.organizationId, apiKeyId: key.id }, key.grants);
  });
}

/** The key with this id, or undefined when there is none or it was revoked. */
export async function findApiKey(ledger: Ledger, id: string): Promise<ApiKeyRecord | undefined> {
  const row = await ledger
    .selectFrom("api_keys")
    .select((select) => [
      "api_keys.id",
      "api_keys.organization_id",
      "api_keys.sha256",
      jsonArrayFrom(
        select
          .selectFrom("grants")
          .select(["grants.permission", "grants.resource"])
          .whereRef("grants.api_key_id", "=", "api_keys.id"),
      ).as("grants"),
    ])
    .where("api_keys.id", "=", id)
    .where("api_keys.revoked_at", "is", null)
    .executeTakeFirst();
  return row && { id: row.id, organizationId: row.organization_id, sha256: row.sha256, grants: row.grants };
}

/** Revokes a key for good. @returns false when there is no such key; revoking twice is true both times */
export async function revokeApiKey(ledger: Ledger, id: string, at: Date): Promise<boolean> {
  const result = await ledger
    .updateTable("api_keys")
    .set((update) => ({ revoked_at: update.fn.coalesce("revoked_at", update.val(at)) }))
    .where("id", "=", id)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}
