import { equalJson } from "../apply/json.ts";
import type { Store } from "../cache/store.ts";
import type { KubeClient } from "../client/client.ts";
import { withType } from "../client/requests.ts";
import type { Condition, KubernetesObject, Resource } from "../client/types.ts";

/** A status as every kind of ours has it. */
export interface ObjectStatus {
  observedGeneration?: number;
  conditions?: Condition[];
}

/** An object with a status subresource. */
export interface StatusObject<S extends ObjectStatus = ObjectStatus> extends KubernetesObject {
  status?: S;
}

/**
 * Writes a status through the status subresource, only when it differs from the object's. Returns whether it wrote.
 * The store is updated, so that the next reconcile compares with what was written.
 * @throws KubeError 409 when the object changed since it was read, 404 when it is deleted
 */
export async function writeStatus<T extends StatusObject>(
  object: T,
  status: T["status"],
  options: {
    client: KubeClient;
    resource: Resource;
    store: Store<T>;
    fieldManager?: string;
    signal?: AbortSignal;
  },
): Promise<boolean> {
  if (equalJson(object.status, status)) {
    return false;
  }
  const { client, resource, store, fieldManager, signal } = options;
  const body = withType({ ...object, status }, resource);
  store.observe(await client.updateStatus<T>(resource, body, { fieldManager, signal }));
  return true;
}
