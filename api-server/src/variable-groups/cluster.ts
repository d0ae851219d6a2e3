import { isNotFound, type KubeClient } from "@slipway/controller-runtime";
import {
  API_VERSION,
  fieldManagers,
  labels,
  MANAGED_BY,
  organizationNamespace,
  type Project,
  VARIABLE_GROUP_ID,
  type VariableGroup,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import { projectResource, variableGroupResource } from "../resources.ts";

/** Variable groups as they are in the cluster. They are read live: that is rare. */

export const WRITE = { fieldManager: fieldManagers.api };

/** Every group of an organization, the oldest first. @throws Failure 503 */
export async function listGroups(kube: KubeClient, organizationId: string): Promise<VariableGroup[]> {
  const namespace = organizationNamespace(organizationId);
  const found = await withClusterErrors(kube.listAll<VariableGroup>(variableGroupResource, { namespace }));
  const createdAt = ({ metadata }: VariableGroup): string => `${metadata.creationTimestamp} ${metadata.name}`;
  return found.filter(isAlive).toSorted((a, b) => (createdAt(a) < createdAt(b) ? -1 : 1));
}

/** The organization's group; undefined when it has none of this id. @throws Failure 503 */
export async function groupIfAny(
  kube: KubeClient,
  organizationId: string,
  id: string,
): Promise<VariableGroup | undefined> {
  if (!VARIABLE_GROUP_ID.test(id)) {
    return undefined;
  }
  const ref = { namespace: organizationNamespace(organizationId), name: id };
  const found = await withClusterErrors(kube.getOrUndefined<VariableGroup>(variableGroupResource, ref));
  return found && isAlive(found) ? found : undefined;
}

/** @throws Failure 404 when the organization has no such group, 503 */
export async function findGroup(
  kube: KubeClient,
  organizationId: string,
  id: string,
): Promise<VariableGroup> {
  const found = await groupIfAny(kube, organizationId, id);
  if (found === undefined) {
    throw failures.variableGroupNotFound(id);
  }
  return found;
}

/** @throws Failure 409 when the organization has too many, 503 */
export function createGroup(
  kube: KubeClient,
  organizationId: string,
  name: string,
  spec: VariableGroup["spec"],
): Promise<VariableGroup> {
  const metadata = {
    name,
    namespace: organizationNamespace(organizationId),
    labels: { [labels.managedBy]: MANAGED_BY, [labels.organization]: organizationId },
  };
  const group: VariableGroup = { apiVersion: API_VERSION, kind: "VariableGroup", metadata, spec };
  return withClusterErrors(kube.create<VariableGroup>(variableGroupResource, group, WRITE));
}

/** Patches a group's spec; null removes a field. @throws Failure 404, 409 when it was changed since it was read, 503 */
export function patchGroup(
  kube: KubeClient,
  { metadata }: VariableGroup,
  spec: Record<string, unknown>,
): Promise<VariableGroup> {
  const { name, namespace, uid, resourceVersion } = metadata;
  const patch = { metadata: { uid, resourceVersion }, spec };
  return withClusterErrors(
    kube.patch<VariableGroup>(variableGroupResource, { name, namespace }, patch, WRITE),
    { missing: () => failures.variableGroupNotFound(name), conflict: failures.variableGroupConflict },
  );
}

/** Deletes a group, and its Secret with it; one that is deleted already is no failure. @throws Failure 503 */
export async function deleteGroup(kube: KubeClient, { metadata }: VariableGroup): Promise<void> {
  const { name, namespace, uid } = metadata;
  const deletion = kube
    .delete(variableGroupResource, { name, namespace }, { uid })
    .catch((error: unknown) => {
      if (!isNotFound(error)) {
        throw error;
      }
    });
  await withClusterErrors(deletion);
}

/** Ids of the projects that attach a group, read live: another replica may have attached it a moment ago. @throws Failure 503 */
export async function attachedTo(kube: KubeClient, { metadata }: VariableGroup): Promise<string[]> {
  const { name, namespace } = metadata;
  const projects = await withClusterErrors(kube.listAll<Project>(projectResource, { namespace }));
  return projects
    .filter(({ spec }) => spec.variableGroups?.includes(name))
    .map((project) => project.metadata.name)
    .sort();
}

const isAlive = ({ metadata }: VariableGroup): boolean => metadata.deletionTimestamp === undefined;
