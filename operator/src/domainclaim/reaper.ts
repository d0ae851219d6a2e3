/** Frees hostnames whose project is gone: a namespaced Project cannot own a cluster-scoped claim. */

import type { DomainClaim, Project } from "@slipway/crds";
import type { KubeClient, ObjectRef, Store } from "@slipway/kube";
import type { PolicyRule } from "../rbac.ts";
import { projectResource } from "../resources.ts";
import type { ReconcileContext } from "../runtime/controller.ts";
import type { Result } from "../runtime/outcome.ts";
import { deleteClaim, holds } from "./claims.ts";

export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["domainclaims"], verbs: ["get", "list", "watch", "delete"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["get", "list", "watch"] },
];

export interface ReaperDependencies {
  client: KubeClient;
  claims: Store<DomainClaim>;
  projects: Store<Project>;
}

/**
 * Looks at one claim. A project that is being deleted still holds its hostnames: it gives them back itself, once its
 * route is gone.
 */
export async function reap(
  { name }: ObjectRef,
  { client, claims, projects }: ReaperDependencies,
  { signal, log }: Pick<ReconcileContext, "signal" | "log">,
): Promise<Result | undefined> {
  const claim = claims.get(undefined, name);
  if (!claim || claim.metadata.deletionTimestamp) {
    return undefined;
  }
  const { projectRef } = claim.spec;
  const known = projects.get(projectRef.namespace, projectRef.name);
  if (known && holds(known, claim)) {
    return undefined;
  }
  // The claim may have come before its project in the watches: only the live state is proof.
  const live = await client.getOrUndefined<Project>(projectResource, projectRef, { signal });
  if (live && holds(live, claim)) {
    return undefined;
  }
  log.info({ hostname: name, project: projectRef.name }, "freeing the hostname of a project that is gone");
  await deleteClaim(claim.metadata, client, signal);
  return undefined;
}
