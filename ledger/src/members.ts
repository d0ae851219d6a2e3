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

/** Adds a user, its membership and its grants, all or nothing. An existing membership takes the new role. */
export async function insertMember(ledger: Ledger, member: Member): Promise<void> {
  await ledger.transaction().execute(async (transaction) => {
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
  });
}

/** The user's place in the organization, or undefined when it has none. */
export async function findMember(
  ledger: Ledger,
  userId: string,
  organizationId: string,
): Promise<Member | undefined> {
  const row = await ledger
    .selectFrom("memberships")
    .select((select) => [
      "memberships.role",
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
  return row && { userId, organizationId, role: row.role, grants: row.grants };
}
