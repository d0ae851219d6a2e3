/** Taking and giving back hostnames. A DomainClaim is named after its hostname, so creating it is atomic. */

import { type DomainClaim, domainClaim, fieldManagers, type Project } from "@slipway/crds";
import { isAlreadyExists, isConflict, type KubeClient, type Store } from "@slipway/kube";
import { domainClaimResource } from "../resources.ts";

/** What claiming needs beside the project. */
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

/** Whether a claim is held by this very project, not by an earlier one of its name. */
export function holds(project: Project, claim: DomainClaim): boolean {
  return claim.spec.projectRef.uid === project.metadata.uid;
}

/**
 * Takes a hostname for a project. Asks the cluster only when the hostname is not known to be held already.
 * @returns false when another project holds it
 */
export async function claimHostname(
  project: Project,
  claim: { hostname: string; organization: string; kind: DomainClaim["spec"]["kind"] },
  { client, claims }: ClaimDependencies,
  signal?: AbortSignal,
): Promise<boolean> {
  const known = claims.get(undefined, claim.hostname);
  if (known && holds(project, known) && !known.metadata.deletionTimestamp) {
    return true;
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
    return live !== undefined && holds(project, live) && !live.metadata.deletionTimestamp;
  }
}

/**
 * Gives back every hostname that a project holds, except the ones to keep. To be called only after no route of the
 * project leads from them any more.
 */
export async function releaseHostnames(
  project: Project,
  keep: readonly string[],
  { client, claims }: ClaimDependencies,
  signal?: AbortSignal,
): Promise<void> {
  const held = claims.byIndex(BY_PROJECT_UID, project.metadata.uid ?? "");
  for (const { metadata } of held.filter(({ metadata: { name } }) => !keep.includes(name))) {
    await deleteClaim(metadata, client, signal);
  }
}

/** Deletes the very claim that was looked at; one made anew under its name stays. */
export async function deleteClaim(
  { name, uid }: DomainClaim["metadata"],
  client: KubeClient,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await client.delete(domainClaimResource, { name }, { uid, signal });
  } catch (error) {
    if (!isConflict(error)) {
      throw error;
    }
  }
}
