import { isNotFound, type KubeClient } from "@slipway/controller-runtime";
import {
  API_VERSION,
  fieldManagers,
  LOG_DRAIN_ID,
  type LogDrain,
  labels,
  MANAGED_BY,
  organizationNamespace,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import { logDrainResource } from "../resources.ts";

/** Log drains as they are in the cluster. They are read live: that is rare. */

export const WRITE = { fieldManager: fieldManagers.api };

/** Every drain of an organization, the oldest first. @throws Failure 503 */
export async function listDrains(kube: KubeClient, organizationId: string): Promise<LogDrain[]> {
  const namespace = organizationNamespace(organizationId);
  const found = await withClusterErrors(kube.listAll<LogDrain>(logDrainResource, { namespace }));
  const createdAt = ({ metadata }: LogDrain): string => `${metadata.creationTimestamp} ${metadata.name}`;
  return found.filter(isAlive).toSorted((a, b) => (createdAt(a) < createdAt(b) ? -1 : 1));
}

/** @throws Failure 404 when the organization has no such drain, 503 */
export async function findDrain(kube: KubeClient, organizationId: string, id: string): Promise<LogDrain> {
  if (!LOG_DRAIN_ID.test(id)) {
    throw failures.logDrainNotFound(id);
  }
  const ref = { namespace: organizationNamespace(organizationId), name: id };
  const found = await withClusterErrors(kube.getOrUndefined<LogDrain>(logDrainResource, ref));
  if (found === undefined || !isAlive(found)) {
    throw failures.logDrainNotFound(id);
  }
  return found;
}

/** @throws Failure 409 when the organization has too many, 503 */
export function createDrain(
  kube: KubeClient,
  organizationId: string,
  name: string,
  spec: LogDrain["spec"],
): Promise<LogDrain> {
  const metadata = {
    name,
    namespace: organizationNamespace(organizationId),
    labels: { [labels.managedBy]: MANAGED_BY, [labels.organization]: organizationId },
  };
  const drain: LogDrain = { apiVersion: API_VERSION, kind: "LogDrain", metadata, spec };
  return withClusterErrors(kube.create<LogDrain>(logDrainResource, drain, WRITE));
}

/** Patches a drain's spec; null removes a field. @throws Failure 404, 409 when it was changed since it was read, 503 */
export function patchDrain(
  kube: KubeClient,
  { metadata }: LogDrain,
  spec: Record<string, unknown>,
): Promise<LogDrain> {
  const { name, namespace, uid, resourceVersion } = metadata;
  const patch = { metadata: { uid, resourceVersion }, spec };
  return withClusterErrors(kube.patch<LogDrain>(logDrainResource, { name, namespace }, patch, WRITE), {
    missing: () => failures.logDrainNotFound(name),
    conflict: failures.logDrainConflict,
  });
}

/** Deletes a drain, and its Secret with it; one that is deleted already is no failure. @throws Failure 503 */
export async function deleteDrain(kube: KubeClient, { metadata }: LogDrain): Promise<void> {
  const { name, namespace, uid } = metadata;
  const deletion = kube.delete(logDrainResource, { name, namespace }, { uid }).catch((error: unknown) => {
    if (!isNotFound(error)) {
      throw error;
    }
  });
  await withClusterErrors(deletion);
}

const isAlive = ({ metadata }: LogDrain): boolean => metadata.deletionTimestamp === undefined;
