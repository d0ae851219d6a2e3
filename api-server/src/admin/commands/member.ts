import { type Role, removeMember, setMember } from "@slipway/ledger";
import { oidcUserId } from "../../auth/oidc.ts";
import { type AdminContext, AdminError } from "../context.ts";
import { parseGrants, requireOrganization } from "../credentials.ts";

/** How a command names a user: by its id, or by an issuer and the subject in its tokens. */
export interface UserOptions {
  organization: string;
  user?: string;
  issuer?: string;
  subject?: string;
}

const USER_ID = /^[\x21-\x7e]{1,300}$/;

function userIdOf({ user, issuer, subject }: UserOptions): string {
  const byIssuer = issuer !== undefined && subject !== undefined;
  if (byIssuer && user === undefined) {
    return oidcUserId(issuer, subject);
  }
  if (user === undefined || issuer !== undefined || subject !== undefined) {
    throw new AdminError("name the user either by --user, or by --issuer and --subject");
  }
  if (!USER_ID.test(user)) {
    throw new AdminError("a user id has 1 to 300 visible characters");
  }
  return user;
}

/** Gives a user exactly this role and these grants in the organization, from the next seconds on. */
export async function setOrganizationMember(
  context: AdminContext,
  options: UserOptions & { role: Role; grant: string[] },
): Promise<{ organization_id: string; user_id: string; role: Role; grants: string[] }> {
  const userId = userIdOf(options);
  const grants = parseGrants(options.grant);
  const { organization: organizationId, role } = options;
  await requireOrganization(context, organizationId);
  await setMember(context.ledger, { userId, organizationId, role, grants });
  return {
    organization_id: organizationId,
    user_id: userId,
    role,
    grants: grants.map(({ permission, resource }) => `${permission} on ${resource}`),
  };
}

/** Takes a user out of the organization: its tokens are refused there within seconds. */
export async function removeOrganizationMember(
  context: AdminContext,
  options: UserOptions,
): Promise<{ organization_id: string; user_id: string; removed: true }> {
  const userId = userIdOf(options);
  if (!(await removeMember(context.ledger, userId, options.organization))) {
    throw new AdminError(`${userId} is no member of organization ${options.organization}`);
  }
  return { organization_id: options.organization, user_id: userId, removed: true };
}
