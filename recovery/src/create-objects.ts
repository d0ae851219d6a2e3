/** Creates a backup's objects in the cluster. */

import {
  equalJson,
  isAlreadyExists,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import type { LedgerPlace } from "./ledger.ts";
import { restoredResources } from "./objects.ts";
import { restoredObject, type Uids } from "./restored-object.ts";

type WithStatus = KubernetesObject & { status?: object };
type Secret = KubernetesObject & { data?: object };

const FIELD_MANAGER = "slipway-recovery";

/**
 * Creates each object, and its status; one that exists by now is left as it is, but for the platform's Secrets, which are replaced.
 * @param objects in the order in which a backup has them
 * @returns the uids of those that were there before
 */
export async function createObjects(
  { client, signal }: LedgerPlace,
  objects: AsyncIterable<KubernetesObject>,
  backups: ReadonlyMap<string, string>,
): Promise<Uids> {
  const uids = new Map<string, string>();
  for await (const saved of objects) {
    const resource = restoredResources.find(({ kind }) => kind === saved.kind);
    if (!resource) {
      throw new Error(`an object of kind ${saved.kind} is not restored`);
    }
    const live = await created(client, resource, restoredObject(saved, uids, backups), signal);
    if (saved.metadata?.uid && live.metadata?.uid) {
      uids.set(saved.metadata.uid, live.metadata.uid);
    }
  }
  return uids;
}

async function created(
  client: KubeClient,
  resource: Resource,
  object: WithStatus,
  signal?: AbortSignal,
): Promise<KubernetesObject> {
  const { status, ...rest } = object;
  const { namespace, name = "" } = object.metadata ?? {};
  const ref = { namespace: resource.namespaced ? namespace : undefined, name };
  const create = () => client.create(resource, rest, { fieldManager: FIELD_MANAGER, signal });
  const live = await create().catch(async (error: unknown) => {
    if (!isAlreadyExists(error)) {
      throw error;
    }
    const found = await client.get<Secret>(resource, ref, { signal });
    if (resource !== resources.secrets || equalJson(found.data, (rest as Secret).data)) {
      return found;
    }
    // It may be immutable.
    await client.delete(resource, ref, { signal });
    return await create();
  });
  // Over what is there: one that was created may have lost its status to the end of the process.
  if (status !== undefined) {
    await client.patch(
      resource,
      ref,
      { status },
      { subresource: "status", fieldManager: FIELD_MANAGER, signal },
    );
  }
  return live;
}
