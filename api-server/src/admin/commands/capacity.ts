import { findPlan } from "@slipway/crds";
import { setPlanCapacity } from "@slipway/ledger";
import { type AdminContext, AdminError } from "../context.ts";

/** Largest number that the ledger keeps. */
const MAX_CAPACITY = 2_147_483_647;

/**
 * Limits the active projects on a plan over all organizations, from the next creation on; what is active stays.
 * @param text a whole number, or undefined for no limit
 */
export async function setCapacity(
  context: AdminContext,
  plan: string,
  text: string | undefined,
): Promise<{ plan: string; limit: number | null }> {
  const limit = text === undefined ? null : wholeNumber(text);
  if (!findPlan(await context.catalog(), plan)) {
    throw new AdminError(`there is no plan ${plan}`);
  }
  await setPlanCapacity(context.ledger, plan, limit);
  return { plan, limit };
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!/^[0-9]+$/.test(text) || number > MAX_CAPACITY) {
    throw new AdminError(`the limit must be a whole number from 0 to ${MAX_CAPACITY}, not ${text}`);
  }
  return number;
}
