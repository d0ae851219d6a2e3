import type { Store } from "../cache/store.ts";
import type { KubeClient } from "../client/client.ts";
import { isNotFound } from "../client/errors.ts";
import { type KubernetesObject, type Resource, refOf } from "../client/types.ts";

/** What the finalizer helpers need beside the object. */
export interface FinalizerOptions<T extends KubernetesObject> {
  client: KubeClient;
  resource: Resource;
  /** Called with the result, so that the next reconcile sees it. */
  store?: Store<T>;
  fieldManager?: string;
  signal?: AbortSignal;
}

/** Whether an object carries a finalizer. */
export function hasFinalizer(object: KubernetesObject, finalizer: string): boolean {
  return object.metadata?.finalizers?.includes(finalizer) ?? false;
}

/**
 * Adds a finalizer, unless it exists or the object is being deleted (the apiserver would reject it). Returns the object
 * as it is then. @throws KubeError 409 when the object changed since it was read
 */
export async function ensureFinalizer<T extends KubernetesObject>(
  object: T,
  finalizer: string,
  options: FinalizerOptions<T>,
): Promise<T> {
  if (hasFinalizer(object, finalizer) || object.metadata?.deletionTimestamp) {
    return object;
  }
  return await patchFinalizers(object, [...(object.metadata?.finalizers ?? []), finalizer], options);
}

/**
 * Removes a finalizer: the last step of a deletion. No error when the object no longer exists.
 * @throws KubeError 409 when the object changed since it was read
 */
export async function removeFinalizer<T extends KubernetesObject>(
  object: T,
  finalizer: string,
  options: FinalizerOptions<T>,
): Promise<void> {
  if (!hasFinalizer(object, finalizer)) {
    return;
  }
  const left = (object.metadata?.finalizers ?? []).filter((name) => name !== finalizer);
  try {
    await patchFinalizers(object, left, options);
  } catch (error) {
    if (!isNotFound(error)) {
      throw error;
    }
  }
}

async function patchFinalizers<T extends KubernetesObject>(
  object: T,
  finalizers: string[],
  { client, resource, store, fieldManager, signal }: FinalizerOptions<T>,
): Promise<T> {
  // The resourceVersion and the uid make it conditional: a list is replaced whole, and never that of a namesake.
  const { resourceVersion, uid } = object.metadata ?? {};
  const patch = { metadata: { resourceVersion, uid, finalizers } };
  const written = await client.patch<T>(resource, refOf(object), patch, { fieldManager, signal });
  const isRemoved =
    written.metadata?.deletionTimestamp !== undefined && (written.metadata.finalizers ?? []).length === 0;
  if (!isRemoved) {
    store?.observe(written);
  }
  return written;
}
