import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations, organizationNamespace } from "@slipway/crds";
import { isBudgetExhausted, listBlockedOrganizations } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { Services } from "../services.ts";

/** Reads whether an organization is provisioned or blocked. */

/** The live namespace of an organization, or undefined when there is none. */
export function readNamespace(
  kube: KubeClient,
  organizationId: string,
): Promise<KubernetesObject | undefined> {
  return kube.getOrUndefined(resources.namespaces, { name: organizationNamespace(organizationId) });
}

/** Whether projects can be created in it: it exists, is not being deleted, and the operator has applied all its policies. */
export function isProvisioned(namespace: KubernetesObject | undefined): boolean {
  return (
    namespace?.metadata !== undefined &&
    namespace.metadata.deletionTimestamp === undefined &&
    namespace.metadata.annotations?.[annotations.guarded] !== undefined
  );
}

type OrganizationServices = Pick<Services, "ledger" | "now">;

/** @throws Failure 402 when the organization is blocked, 503 when the ledger is unavailable */
export async function refuseBlocked(
  { ledger }: Pick<Services, "ledger">,
  organizationId: string,
): Promise<void> {
  const blocked = await withLedgerErrors(() => listBlockedOrganizations(ledger, [organizationId]));
  if (blocked.length > 0) {
    throw failures.organizationBlocked();
  }
}

/** @throws Failure 402 when the organization has spent a budget with a hard cap, 503 when the ledger is unavailable */
export async function refuseExhausted(
  { ledger, now }: OrganizationServices,
  organizationId: string,
): Promise<void> {
  if (await withLedgerErrors(() => isBudgetExhausted(ledger, organizationId, now()))) {
    throw failures.budgetExhausted();
  }
}

/**
 * Called before anything new starts: a creation, a resume. What runs already continues.
 * @throws Failure 402 when the organization is blocked or has spent a budget with a hard cap, 503 when the ledger is unavailable
 */
export async function refuseStart(services: OrganizationServices, organizationId: string): Promise<void> {
  await refuseBlocked(services, organizationId);
  await refuseExhausted(services, organizationId);
}
