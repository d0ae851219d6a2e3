/** Frees hostnames whose project is gone: a namespaced Project cannot own a cluster-scoped claim. */

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
 * Looks at one claim, and deletes it when its project is gone. A project that is being deleted still holds its
 * hostnames: it gives them back itself, once its route is gone.
 * @returns whether the claim is to go
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
  // The claim may have come before its project in the watches: only the live state is proof.
  const live = await client.getOrUndefined<Project>(projectResource, projectRef, { signal });
  if (live && isHolder(live, claim)) {
    return false;
  }
  log.info({ hostname: name, project: projectRef.name }, "freeing the hostname of a project that is gone");
  await deleteClaim(claim.metadata, client, signal);
  return true;
}
