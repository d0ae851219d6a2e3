import { setTimeout as sleep } from "node:timers/promises";
import { isNotFound } from "@slipway/controller-runtime";
import { annotations, type DomainClaim, domainClaimConditions } from "@slipway/crds";
import { domainClaimResource } from "../../resources.ts";
import { type AdminContext, AdminError } from "../context.ts";

const VERIFY_WAIT_MS = 15_000;
const VERIFY_POLL_MS = 200;

/**
 * Marks a custom domain as verified whose TXT record cannot be resolved. `verified` is whether the operator has applied it
 * by now.
 */
export async function verifyDomain(
  context: AdminContext,
  given: string,
): Promise<{ hostname: string; verified: boolean }> {
  const hostname = given.toLowerCase().replace(/\.$/, "");
  const patch = { metadata: { annotations: { [annotations.verifiedByOperator]: "true" } } };
  const kube = await context.kube();
  let claim: DomainClaim;
  try {
    claim = await kube.patch<DomainClaim>(domainClaimResource, { name: hostname }, patch);
  } catch (error) {
    // What is no name of an object is no claim's either.
    if (isNotFound(error) || error instanceof TypeError) {
      throw new AdminError(`no project claims the domain ${hostname}`);
    }
    throw error;
  }
  const deadline = performance.now() + VERIFY_WAIT_MS;
  while (!isVerified(claim)) {
    if (performance.now() > deadline) {
      context.warn(`warning: the operator has not taken up the verification of ${hostname} yet`);
      return { hostname, verified: false };
    }
    await sleep(VERIFY_POLL_MS);
    const found = await kube.getOrUndefined<DomainClaim>(domainClaimResource, { name: hostname });
    if (!found) {
      throw new AdminError(`the domain ${hostname} was released meanwhile`);
    }
    claim = found;
  }
  return { hostname, verified: true };
}

function isVerified({ status }: DomainClaim): boolean {
  return (status?.conditions ?? []).some(
    ({ type, status: is }) => type === domainClaimConditions.Verified && is === "True",
  );
}
