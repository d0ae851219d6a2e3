/** Creates and deletes DomainClaims. A DomainClaim is named after its hostname, so creating it is atomic. */

import { deleteSeen, isAlreadyExists, type KubeClient, type Store } from "@slipway/controller-runtime";
import {
  type DomainClaim,
  type DomainClaimSpec,
  domainClaim,
  fieldManagers,
  type Project,
} from "@slipway/crds";
import { domainClaimResource } from "../resources.ts";

/** What claiming needs in addition to the project. */
export interface ClaimDependencies {
  client: KubeClient;
  claims: Store<DomainClaim>;
}

/** Index of claims by the uid of the project that holds them. */
export const BY_PROJECT_UID = "projectUid";

/** Indexers that a store of claims needs. */
export const claimIndexers = {
  [BY_PROJECT_UID]: (claim: DomainClaim) => [claim.spec.projectRef.uid],
};

/** How long a claim that was created ahead of the spec is kept, in milliseconds. */
const AHEAD_MS = 60_000;

/**
 * Whether a claim belongs to this very project, not to an earlier one of its name. The namespace counts, too: the claim's
 * challenge is derived from it.
 */
export function isHolder({ metadata }: Project, { spec: { projectRef } }: DomainClaim): boolean {
  const { uid, namespace, name } = projectRef;
  return uid === metadata.uid && namespace === metadata.namespace && name === metadata.name;
}

/** Every claim that a project holds. */
export function claimsOf(project: Project, claims: Store<DomainClaim>): DomainClaim[] {
  return claims
    .byIndex(BY_PROJECT_UID, project.metadata.uid ?? "")
    .filter((claim) => isHolder(project, claim));
}

/**
 * Claims a hostname for a project. Calls the apiserver only when the store does not have the hostname's claim.
 * @returns false when another project holds it; the caller may try again when the watch reports the claim's deletion
 */
export async function claimHostname(
  project: Project,
  claim: Pick<DomainClaimSpec, "hostname" | "organization" | "kind">,
  { client, claims }: ClaimDependencies,
  signal?: AbortSignal,
): Promise<boolean> {
  const known = claims.get(undefined, claim.hostname);
  if (known && !known.metadata.deletionTimestamp) {
    return isHolder(project, known);
  }
  try {
    const options = { fieldManager: fieldManagers.project, signal };
    claims.observe(await client.create(domainClaimResource, domainClaim(project, claim), options));
    return true;
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
    const live = await client.getOrUndefined<DomainClaim>(
      domainClaimResource,
      { name: claim.hostname },
      { signal },
    );
    return live !== undefined && isHolder(project, live) && !live.metadata.deletionTimestamp;
  }
}

/**
 * For how many more milliseconds a claim that the spec does not request is kept: the API claims ahead of the spec. 0 when
 * it may be deleted. Pure.
 */
export function keptAheadMs(claim: DomainClaim, project: Project, now: Date): number {
  const { reservedFor } = claim.spec;
  if (reservedFor === undefined || (project.metadata.generation ?? 0) >= reservedFor.generation) {
    return 0;
  }
  return Math.max(0, AHEAD_MS - (now.getTime() - Date.parse(reservedFor.at)));
}

/**
 * Deletes the claim as it was read: a newer one of its name stays, and so does one that changed since.
 * @returns false when it has changed, and has to be read again
 */
export const deleteClaim = (
  metadata: DomainClaim["metadata"],
  client: KubeClient,
  signal?: AbortSignal,
): Promise<boolean> =>
  deleteSeen(
    client,
    domainClaimResource,
    { metadata },
    { resourceVersion: metadata.resourceVersion, signal },
  );
