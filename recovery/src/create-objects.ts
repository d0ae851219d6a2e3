/** Creates a backup's objects in the cluster. */

import {
  equalJson,
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
  const live =
    (await unchanged(client, resource, object, signal)) ??
    (await client.create(resource, rest, { fieldManager: FIELD_MANAGER, signal }));
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

/**
 * The object as it is there by now, unless it is a Secret of other content, which is deleted: it may be immutable. It is read first: a Service
 * that is created once more is refused for its own port.
 */
async function unchanged(
  client: KubeClient,
  resource: Resource,
  object: KubernetesObject,
  signal?: AbortSignal,
): Promise<KubernetesObject | undefined> {
  const { namespace, name = "" } = object.metadata ?? {};
  const ref = { namespace: resource.namespaced ? namespace : undefined, name };
  const live = await client.getOrUndefined<Secret>(resource, ref, { signal });
  if (live && resource === resources.secrets && !equalJson(live.data, (object as Secret).data)) {
    await client.delete(resource, ref, { signal });
    return undefined;
  }
  return live;
}
