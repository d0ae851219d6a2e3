/** Converts Projects that an earlier version of the platform has written. */

import type { KubeClient, Store } from "@slipway/controller-runtime";
import { fieldManagers, formerStatePatch, type Project } from "@slipway/crds";
import { projectResource } from "../resources.ts";

/**
 * Replaces state in annotations with fields of the spec. Pod templates do not change.
 * @throws KubeError 409 when the project changed since it was read
 */
export async function convertFormerState(
  project: Project,
  { client, store, signal }: { client: KubeClient; store: Store<Project>; signal: AbortSignal },
): Promise<void> {
  const patch = project.metadata.deletionTimestamp ? undefined : formerStatePatch(project);
  if (patch === undefined) {
    return;
  }
  const { namespace, name } = project.metadata;
  const options = { fieldManager: fieldManagers.project, signal };
  store.observe(await client.patch<Project>(projectResource, { namespace, name }, patch, options));
}
