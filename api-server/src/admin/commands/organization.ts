import { setTimeout as sleep } from "node:timers/promises";
import {
  insertOrganization,
  listBlocks,
  type Role,
  removeMember,
  setMember,
  setOrganizationBlocked,
} from "@slipway/ledger";
import { oidcUserId } from "../../auth/oidc.ts";
import { newOrganizationId } from "../../ids.ts";
import { isProvisioned, readNamespace } from "../../organizations/service.ts";
import { EVERY_GRANT } from "../../policy/permissions.ts";
import { type AdminContext, AdminError } from "../context.ts";
import { createApiKey, createUserToken, parseGrants, requireOrganization } from "../credentials.ts";
import { pageOf } from "./invoice.ts";

const PROVISION_WAIT_MS = 60_000;
const PROVISION_POLL_MS = 500;
/** Organizations of one page. */
const BLOCKS_PAGE = 100;

/**
 * A new organization with its first key and its owner. Returns once the operator has provisioned its namespace,
 * or after a minute with a warning.
 */
export async function createOrganization(
  context: AdminContext,
  name: string,
): Promise<{ organization_id: string; api_key: string; owner_token: string }> {
  if (name.length < 1 || name.length > 128) {
    throw new AdminError("a name has 1 to 128 characters");
  }
  // Read first: without a key file nothing is left half done.
  context.tokenKey();
  const id = newOrganizationId();
  await insertOrganization(context.ledger, { id, name });
  const { api_key } = await createApiKey(context, id, EVERY_GRANT);
  const { token } = await createUserToken(context, id, "owner", []);
  await waitUntilProvisioned(context, id);
  return { organization_id: id, api_key, owner_token: token };
}

/**
 * A blocked organization's creations answer 402 from the next request on. Unblocked, its overdue invoices are waived if it was blocked for them: they
 * block it no more.
 */
export async function blockOrganization(
  context: AdminContext,
  id: string,
  blocked: boolean,
): Promise<{ organization_id: string; blocked: boolean; waived_invoices?: string[] }> {
  const set = await setOrganizationBlocked(context.ledger, id, blocked);
  if (set === undefined) {
    throw new AdminError(`there is no organization ${id}`);
  }
  const { waived } = set;
  return { organization_id: id, blocked, ...(waived.length > 0 ? { waived_invoices: waived } : {}) };
}

/** Blocked organizations of a page, and what for. */
export async function listBlockedForAdmin(
  { ledger }: AdminContext,
  { page: text = "1" }: { page?: string },
): Promise<object> {
  const page = pageOf(text);
  const blocks = await listBlocks(ledger, { limit: BLOCKS_PAGE + 1, offset: (page - 1) * BLOCKS_PAGE });
  const organizations = blocks
    .slice(0, BLOCKS_PAGE)
    .map(({ id, byAdministrator, overdueSince, invoices }) => ({
      organization_id: id,
      blocked_by_administrator: byAdministrator,
      ...(overdueSince ? { blocked_since: overdueSince.toISOString(), blocked_for: invoices } : {}),
    }));
  return { organizations, page, has_more: blocks.length > BLOCKS_PAGE };
}

async function waitUntilProvisioned(context: AdminContext, id: string): Promise<void> {
  const deadline = performance.now() + PROVISION_WAIT_MS;
  let reason = "the operator has not made it";
  while (performance.now() < deadline) {
    try {
      if (isProvisioned(await readNamespace(await context.kube(), id))) {
        return;
      }
      reason = "the operator has not provisioned it, or its quota has not been counted";
    } catch (error) {
      reason = (error as Error).message;
    }
    await sleep(PROVISION_POLL_MS);
  }
  context.warn(`warning: the namespace of organization ${id} is not ready after a minute: ${reason}`);
}

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

/** Sets the role and the grants of a user in the organization, in force within seconds. */
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

/** Removes a user from the organization: its tokens are refused there within seconds. */
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
