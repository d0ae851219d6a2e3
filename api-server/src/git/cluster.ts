import { isNotFound, type KubeClient } from "@slipway/controller-runtime";
import {
  API_VERSION,
  type Build,
  fieldManagers,
  finalizers,
  GIT_CONNECTION_ID,
  type GitConnection,
  type GitConnectionStatus,
  organizationNamespace,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import { buildResource, gitConnectionResource } from "../resources.ts";

/** Git connections and their Secrets as they are in the cluster. They are read live: that is rare. */

export const WRITE = { fieldManager: fieldManagers.api };

/** Every connection of an organization, the oldest first. @throws Failure 503 */
export async function listConnections(kube: KubeClient, organizationId: string): Promise<GitConnection[]> {
  const namespace = organizationNamespace(organizationId);
  const found = await answered(kube.listAll<GitConnection>(gitConnectionResource, { namespace }));
  const createdAt = ({ metadata }: GitConnection): string => `${metadata.creationTimestamp} ${metadata.name}`;
  return found
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => (createdAt(a) < createdAt(b) ? -1 : 1));
}

/** @throws Failure 404 when the organization has no such connection, 503 */
export async function findConnection(
  kube: KubeClient,
  organizationId: string,
  id: string,
): Promise<GitConnection> {
  const found = await connectionIfAny(kube, organizationId, id);
  if (found === undefined) {
    throw failures.gitConnectionNotFound(id);
  }
  return found;
}

/** The organization's connection; undefined when it has none with this id, or deletes it. @throws Failure 503 */
export async function connectionIfAny(
  kube: KubeClient,
  organizationId: string,
  id: string,
): Promise<GitConnection | undefined> {
  if (!GIT_CONNECTION_ID.test(id)) {
    return undefined;
  }
  const ref = { namespace: organizationNamespace(organizationId), name: id };
  const found = await answered(kube.getOrUndefined<GitConnection>(gitConnectionResource, ref));
  return found?.metadata.deletionTimestamp === undefined ? found : undefined;
}

/** @throws Failure 503 */
export function createConnection(
  kube: KubeClient,
  connection: Pick<GitConnection, "metadata" | "spec">,
): Promise<GitConnection> {
  const whole: GitConnection = { apiVersion: API_VERSION, kind: "GitConnection", ...connection };
  return answered(kube.create<GitConnection>(gitConnectionResource, whole, WRITE));
}

/**
 * Patches the connection's spec, unless it was changed since it was read.
 * @throws Failure 404, 409 GIT_CONNECTION_OPERATION_PENDING, 503
 */
export function patchConnection(
  kube: KubeClient,
  { metadata }: GitConnection,
  spec: Partial<GitConnection["spec"]>,
): Promise<GitConnection> {
  const { name, namespace, uid, resourceVersion } = metadata;
  const patch = { metadata: { uid, resourceVersion }, spec };
  return answered(kube.patch<GitConnection>(gitConnectionResource, { name, namespace }, patch, WRITE), name);
}

/** @throws Failure 404, 409, 503 */
export function patchConnectionStatus(
  kube: KubeClient,
  { metadata }: GitConnection,
  status: Partial<GitConnectionStatus>,
): Promise<GitConnection> {
  const { name, namespace, uid, resourceVersion } = metadata;
  const patch = { metadata: { uid, resourceVersion }, status };
  const options = { ...WRITE, subresource: "status" };
  return answered(
    kube.patch<GitConnection>(gitConnectionResource, { name, namespace }, patch, options),
    name,
  );
}

/** The live connection; undefined when it is deleted, or another one has its name. @throws Failure 503 */
export async function currentConnection(
  kube: KubeClient,
  { metadata: { name, namespace, uid } }: GitConnection,
): Promise<GitConnection | undefined> {
  const found = await answered(
    kube.getOrUndefined<GitConnection>(gitConnectionResource, { name, namespace }),
  );
  return found?.metadata.uid === uid ? found : undefined;
}

/** Attempts at a hook's record that conflict with other writes. */
const TRIES = 5;

/**
 * Records a hook that is about to be created; the connection has a finalizer until the hook is removed, so that a call that revokes or deletes the
 * connection knows every hook that may exist. @throws Failure 404, 409, 503
 */
export async function recordHook(
  kube: KubeClient,
  connection: GitConnection,
  hook: NonNullable<GitConnectionStatus["hooks"]>[number],
): Promise<GitConnection> {
  for (let attempt = 1; ; attempt += 1) {
    const live = await currentConnection(kube, connection);
    const { name } = connection.metadata;
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) {
      throw failures.gitConnectionNotFound(name);
    }
    try {
      const present = await addFinalizer(kube, live);
      const others = (present.status?.hooks ?? []).filter((one) => one.repositoryId !== hook.repositoryId);
      return await patchConnectionStatus(kube, present, { hooks: [...others, hook] });
    } catch (error) {
      const isChanged = error instanceof Failure && error.code === "GIT_CONNECTION_OPERATION_PENDING";
      if (!isChanged || attempt >= TRIES) {
        throw error;
      }
    }
  }
}

async function addFinalizer(kube: KubeClient, connection: GitConnection): Promise<GitConnection> {
  const { name, namespace, uid, resourceVersion, finalizers: present = [] } = connection.metadata;
  if (present.includes(finalizers.gitConnection)) {
    return connection;
  }
  const patch = { metadata: { uid, resourceVersion, finalizers: [...present, finalizers.gitConnection] } };
  return answered(kube.patch<GitConnection>(gitConnectionResource, { name, namespace }, patch, WRITE), name);
}

/**
 * Deletes one that has no hook left at its server; one that is deleted already is no failure.
 * @throws Failure 409 when it was changed meanwhile, 503
 */
export async function deleteConnection(kube: KubeClient, connection: GitConnection): Promise<void> {
  const { name, namespace, uid, resourceVersion, finalizers: present = [] } = connection.metadata;
  if (present.includes(finalizers.gitConnection)) {
    const left = present.filter((one) => one !== finalizers.gitConnection);
    const patch = { metadata: { uid, resourceVersion, finalizers: left } };
    await answered(ignoreNotFound(kube.patch(gitConnectionResource, { name, namespace }, patch, WRITE)));
  }
  await answered(ignoreNotFound(kube.delete(gitConnectionResource, { name, namespace }, { uid })));
}

/** Whether a build that has not ended uses the connection. @throws Failure 503 */
export async function isBuilding(kube: KubeClient, { metadata }: GitConnection): Promise<boolean> {
  const builds = await answered(kube.listAll<Build>(buildResource, { namespace: metadata.namespace }));
  return builds.some(
    ({ spec, status }) =>
      spec.source?.connectionId === metadata.name &&
      [undefined, "pending", "building"].includes(status?.phase),
  );
}

export async function ignoreNotFound(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isNotFound(error)) {
      throw error;
    }
  }
}

export function answered<T>(call: Promise<T>, id?: string): Promise<T> {
  return withClusterErrors(call, {
    missing: id === undefined ? undefined : () => failures.gitConnectionNotFound(id),
    conflict: () => failures.gitConnectionOperationPending("another change of it is under way"),
  });
}
