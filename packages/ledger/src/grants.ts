import type { Ledger } from "./connect.ts";

/** `<permission> on <resource>`; the permission `*` stands for every permission. */
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
