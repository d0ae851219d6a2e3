import { sql } from "kysely";
import { jsonArrayFrom } from "kysely/helpers/postgres";
import type { Ledger } from "./connect.ts";
import { waiveOverdue } from "./overdue.ts";
import type { Organization, Role } from "./schema.ts";

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

/** Condition of an organization `o` that an administrator has blocked, or an overdue invoice. */
const isBlocked = sql<boolean>`(o.blocked or exists (select from overdue_blocks b where b.organization_id = o.id))`;

/** Which of these organizations are blocked, by an administrator or for an overdue invoice. */
export async function listBlockedOrganizations(ledger: Ledger, ids: readonly string[]): Promise<string[]> {
  const rows = await ledger
    .selectFrom("organizations as o")
    .select("o.id")
    .where(sql<boolean>`o.id = any (${ids}::text[]) and ${isBlocked}`)
    .execute();
  return rows.map(({ id }) => id);
}

/**
 * Sets an administrator's block, which no payment ends. To unblock ends one for overdue invoices, too, and waives them: they block no more.
 * @returns numbers of the invoices that were waived; undefined when there is no such organization
 */
export async function setOrganizationBlocked(
  ledger: Ledger,
  id: string,
  blocked: boolean,
): Promise<{ waived: string[] } | undefined> {
  return ledger.transaction().execute(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable("organizations")
      .set({ blocked })
      .where("id", "=", id)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) {
      return undefined;
    }
    return { waived: blocked ? [] : await waiveOverdue(transaction, id) };
  });
}

/** `<permission> on <resource>`; the permission `*` includes every permission. */
export interface Grant {
  permission: string;
  resource: string;
}

/** Whom a grant is given to: an API key, or a member of the organization. */
export type GrantSubject =
  | { organizationId: string; apiKeyId: string }
  | { organizationId: string; userId: string };

/** Gives grants; one that the subject already has is left as it is. */
export async function insertGrants(
  ledger: Ledger,
  subject: GrantSubject,
  grants: readonly Grant[],
): Promise<void> {
  if (grants.length === 0) {
    return;
  }
  const rows = grants.map((grant) => ({
    organization_id: subject.organizationId,
    api_key_id: "apiKeyId" in subject ? subject.apiKeyId : null,
    user_id: "userId" in subject ? subject.userId : null,
    permission: grant.permission,
    resource: grant.resource,
  }));
  await ledger
    .insertInto("grants")
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

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
