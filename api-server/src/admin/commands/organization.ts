import { setTimeout as sleep } from "node:timers/promises";
import { insertOrganization, setOrganizationBlocked } from "@slipway/ledger";
import { newOrganizationId } from "../../ids.ts";
import { isProvisioned, readNamespace } from "../../organizations/service.ts";
import { EVERY_GRANT } from "../../policy/permissions.ts";
import { type AdminContext, AdminError } from "../context.ts";
import { createApiKey, createUserToken } from "../credentials.ts";

const PROVISION_WAIT_MS = 60_000;
const PROVISION_POLL_MS = 500;

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

/** A blocked organization's creations answer 402 from the next request on. */
export async function blockOrganization(
  context: AdminContext,
  id: string,
  blocked: boolean,
): Promise<{ organization_id: string; blocked: boolean }> {
  const found = await setOrganizationBlocked(context.ledger, id, blocked);
  if (!found) {
    throw new AdminError(`there is no organization ${id}`);
  }
  return { organization_id: id, blocked };
}

async function waitUntilProvisioned(context: AdminContext, id: string): Promise<void> {
  const deadline = performance.now() + PROVISION_WAIT_MS;
  let reason = "the operator has not made it";
  while (performance.now() < deadline) {
    try {
      if (isProvisioned(await readNamespace(context.kube(), id))) {
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
