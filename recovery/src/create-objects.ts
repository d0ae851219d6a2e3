/** Creates a backup's objects in the cluster. */

import {
  equalJson,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import { fieldManagers } from "@slipway/crds";
import type { Installation } from "./installation.ts";
import { restoredResources } from "./objects.ts";
import { restoredObject, type Uids } from "./restored-object.ts";

type WithStatus = KubernetesObject & { status?: object };
type Secret = KubernetesObject & { data?: object };

/**
 * Creates each object, and its status. One that is there by now is left as it is, but for its status, and a Secret of other content, which is
 * replaced: those of the platform are.
 * @param objects in the order in which a backup has them
 * @returns the uid of each object by the uid that it has in the backup
 */
export async function createObjects(
  { client }: Installation,
  objects: AsyncIterable<KubernetesObject>,
  backups: ReadonlyMap<string, string>,
): Promise<Uids> {
  const uids = new Map<string, string>();
  for await (const saved of objects) {
    const resource = restoredResources.find(({ kind }) => kind === saved.kind);
    if (!resource) {
      throw new Error(`an object of kind ${saved.kind} is not restored`);
    }
    const live = await created(client, resource, restoredObject(saved, uids, backups));
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
): Promise<KubernetesObject> {
  const { status, ...rest } = object;
  const { namespace, name = "" } = object.metadata ?? {};
  const ref = { namespace: resource.namespaced ? namespace : undefined, name };
  const live =
    (await unchanged(client, resource, object)) ??
    (await client.create(resource, rest, { fieldManager: fieldManagers.recovery }));
  // Over what is there: one that was created may have lost its status to the end of the process.
  if (status !== undefined) {
    await client.patch(
      resource,
      ref,
      { status },
      { subresource: "status", fieldManager: fieldManagers.recovery },
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
): Promise<KubernetesObject | undefined> {
  const { namespace, name = "" } = object.metadata ?? {};
  const ref = { namespace: resource.namespaced ? namespace : undefined, name };
  const live = await client.getOrUndefined<Secret>(resource, ref);
  if (live && resource === resources.secrets && !equalJson(live.data, (object as Secret).data)) {
    await client.delete(resource, ref);
    return undefined;
  }
  return live;
}
