import { jsonArrayFrom } from "kysely/helpers/postgres";
import type { Ledger } from "./connect.ts";
import { type Grant, insertGrants } from "./grants.ts";
import type { Role } from "./schema.ts";

export interface Member {
  userId: string;
  organizationId: string;
  role: Role;
  grants: readonly Grant[];
}

/** A member as the ledger has it. */
export interface FoundMember extends Member {
  /** Tokens that the platform issued to the user up to then are refused. */
  tokensRevokedAt?: Date;
}

/** Adds a user, its membership and its grants, all or nothing. An existing membership takes the new role. */
export async function insertMember(ledger: Ledger, member: Member): Promise<void> {
  await ledger.transaction().execute((transaction) => addMember(transaction, member));
}

async function addMember(transaction: Ledger, member: Member): Promise<void> {
  await transaction
    .insertInto("users")
    .values({ id: member.userId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await transaction
    .insertInto("memberships")
    .values({ user_id: member.userId, organization_id: member.organizationId, role: member.role })
    .onConflict((conflict) =>
      conflict.columns(["user_id", "organization_id"]).doUpdateSet({ role: member.role }),
    )
    .execute();
  await insertGrants(transaction, member, member.grants);
}

/** Gives a user exactly this role and these grants in the organization; adds the user and its membership when missing. */
export async function setMember(ledger: Ledger, member: Member): Promise<void> {
  await ledger.transaction().execute(async (transaction) => {
    await transaction
      .deleteFrom("grants")
      .where("user_id", "=", member.userId)
      .where("organization_id", "=", member.organizationId)
      .execute();
    await addMember(transaction, member);
  });
}

/**
 * Has every token refused that the platform issued to the user up to a moment.
 * @returns false when there is no such user
 */
export async function revokeUserTokens(ledger: Ledger, userId: string, at: Date): Promise<boolean> {
  const { numUpdatedRows } = await ledger
    .updateTable("users")
    .set({ tokens_revoked_at: at })
    .where("id", "=", userId)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Takes a user out of the organization, with its grants. False when it was not in it. */
export async function removeMember(ledger: Ledger, userId: string, organizationId: string): Promise<boolean> {
  const { numDeletedRows } = await ledger
    .deleteFrom("memberships")
    .where("user_id", "=", userId)
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** The user's place in the organization, or undefined when it has none. */
export async function findMember(
  ledger: Ledger,
  userId: string,
  organizationId: string,
): Promise<FoundMember | undefined> {
  const row = await ledger
    .selectFrom("memberships")
    .innerJoin("users", "users.id", "memberships.user_id")
    .select((select) => [
      "memberships.role",
      "users.tokens_revoked_at",
      jsonArrayFrom(
        select
          .selectFrom("grants")
          .select(["grants.permission", "grants.resource"])
          .whereRef("grants.user_id", "=", "memberships.user_id")
          .whereRef("grants.organization_id", "=", "memberships.organization_id"),
      ).as("grants"),
    ])
    .where("user_id", "=", userId)
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
  if (!row) {
    return undefined;
  }
  const { role, grants, tokens_revoked_at: revokedAt } = row;
  return { userId, organizationId, role, grants, ...(revokedAt ? { tokensRevokedAt: revokedAt } : {}) };
}
