/** Deletes the claims of deleted projects: a namespaced Project cannot own a cluster-scoped claim. */

import type { KubeClient, ObjectRef, ReconcileContext, Store } from "@slipway/controller-runtime";
import type { DomainClaim, Project } from "@slipway/crds";
import { projectResource } from "../resources.ts";
import { deleteClaim, isHolder } from "./claims.ts";

export interface ReaperDependencies {
  client: KubeClient;
  claims: Store<DomainClaim>;
  projects: Store<Project>;
}

/**
 * Deletes a claim whose project no longer exists. A project that is being deleted keeps its hostnames: its finalizer
 * releases them once its route is deleted.
 * @returns whether the claim is deleted
 */
export async function reap(
  { name }: ObjectRef,
  { client, claims, projects }: ReaperDependencies,
  { signal, log }: Pick<ReconcileContext, "signal" | "log">,
): Promise<boolean> {
  const claim = claims.get(undefined, name);
  if (!claim || claim.metadata.deletionTimestamp) {
    return true;
  }
  const { projectRef } = claim.spec;
  const known = projects.get(projectRef.namespace, projectRef.name);
  if (known && isHolder(known, claim)) {
    return false;
  }
  // The watch may have delivered the claim before its project: only a live read is proof.
  const live = await client.getOrUndefined<Project>(projectResource, projectRef, { signal });
  if (live && isHolder(live, claim)) {
    return false;
  }
  log.info({ hostname: name, project: projectRef.name }, "releasing the hostname of a deleted project");
  await deleteClaim(claim.metadata, client, signal);
  return true;
}
