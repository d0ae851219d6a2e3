import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  type DeletedProject,
  deletedProjectState,
  fieldManagers,
  isRestorable,
  organizationNamespace,
  type Project,
} from "@slipway/crds";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import { deletedProjectResource } from "../resources.ts";

/** Records of deleted projects as they are in the cluster. They are read live: that is rare. */

/** Those that can be undeleted, the last deleted first. @throws Failure 503 */
export async function listRestorable(
  kube: KubeClient,
  organizationId: string,
  now: Date,
): Promise<DeletedProject[]> {
  const namespace = organizationNamespace(organizationId);
  const found = await withClusterErrors(kube.listAll<DeletedProject>(deletedProjectResource, { namespace }));
  return found
    .filter((record) => isRestorable(record, now))
    .toSorted((a, b) => Date.parse(b.spec.deletedAt) - Date.parse(a.spec.deletedAt));
}

/** A record as it is now; undefined when it is gone. @throws Failure 503 */
export function readRecord(
  kube: KubeClient,
  { metadata: { namespace, name } }: DeletedProject,
): Promise<DeletedProject | undefined> {
  return withClusterErrors(kube.getOrUndefined<DeletedProject>(deletedProjectResource, { namespace, name }));
}

/** The project as it was; undefined when it is not kept any more. @throws Failure 503 */
export async function readDeleted(
  kube: KubeClient,
  { metadata: { namespace, name } }: DeletedProject,
): Promise<Project | undefined> {
  type Secret = KubernetesObject & { data?: Record<string, string> };
  const secret = await withClusterErrors(kube.getOrUndefined<Secret>(resources.secrets, { namespace, name }));
  return secret && deletedProjectState(secret.data).project;
}

/** Requests that a project is created again. @throws Failure 404 when its record is gone, 503 */
export function requestUndelete(
  kube: KubeClient,
  { metadata }: DeletedProject,
  at: Date,
  missing: () => never,
): Promise<DeletedProject> {
  const { namespace, name, uid } = metadata;
  const patch = { metadata: { uid }, spec: { undeleteRequestedAt: at.toISOString() } };
  const options = { fieldManager: fieldManagers.api };
  return withClusterErrors(
    kube.patch<DeletedProject>(deletedProjectResource, { namespace, name }, patch, options),
    { missing },
  );
}
