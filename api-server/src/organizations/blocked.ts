import { findOrganization } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { Services } from "../services.ts";

/**
 * What starts something new asks this first: a creation, a resume. What runs already goes on.
 * @throws Failure 402 when the organization is blocked, 503 when the ledger cannot be asked
 */
export async function refuseBlocked(
  { ledger }: Pick<Services, "ledger">,
  organizationId: string,
): Promise<void> {
  const organization = await withLedgerErrors(() => findOrganization(ledger, organizationId));
  if (organization?.blocked) {
    throw failures.organizationBlocked();
  }
}
