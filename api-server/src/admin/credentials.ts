import { findOrganization, type Grant, insertApiKey, insertMember, type Role } from "@slipway/ledger";
import { API_KEY_PREFIX, generateApiKey, signUserToken } from "../auth/credentials.ts";
import { newUserId } from "../ids.ts";
import { parseGrant } from "../policy/permissions.ts";
import { type AdminContext, AdminError } from "./context.ts";

/** Days a user token lives. */
const TOKEN_LIFETIME_DAYS = 365;

/** @throws AdminError when there is no such organization */
export async function requireOrganization(context: AdminContext, id: string): Promise<void> {
  if (!(await findOrganization(context.ledger, id))) {
    throw new AdminError(`there is no organization ${id}`);
  }
}

/** @throws AdminError that names the first grant that is none */
export function parseGrants(texts: readonly string[]): Grant[] {
  try {
    return texts.map(parseGrant);
  } catch (error) {
    throw new AdminError((error as Error).message);
  }
}

/** Generates and stores a key. The returned text is the only copy of it. */
export async function createApiKey(
  context: AdminContext,
  organizationId: string,
  grants: readonly Grant[],
): Promise<{ api_key: string; api_key_id: string }> {
  const { id, key, sha256 } = generateApiKey();
  await insertApiKey(context.ledger, { id, organizationId, prefix: API_KEY_PREFIX, sha256, grants });
  return { api_key: key, api_key_id: id };
}

/** Creates a user with this role in the organization, and a token for it. */
export async function createUserToken(
  context: AdminContext,
  organizationId: string,
  role: Role,
  grants: readonly Grant[],
): Promise<{ token: string; user_id: string }> {
  const key = context.tokenKey();
  const userId = newUserId();
  await insertMember(context.ledger, { userId, organizationId, role, grants });
  return { token: await signUserToken(key, userId, TOKEN_LIFETIME_DAYS), user_id: userId };
}
