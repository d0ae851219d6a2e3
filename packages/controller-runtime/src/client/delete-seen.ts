import type { KubeClient } from "./client.ts";
import { isConflict } from "./errors.ts";
import type { DeleteOptions } from "./options.ts";
import type { KubernetesObject, Resource } from "./types.ts";

/**
 * Deletes an object that was seen: another one of its name stays. One that does not exist any more is deleted.
 * @param options with a `resourceVersion` one that has changed since stays, too
 * @returns false when it is another one
 * @throws KubeError
 */
export async function deleteSeen(
  client: Pick<KubeClient, "delete">,
  resource: Resource,
  { metadata: { name = "", namespace, uid } = {} }: KubernetesObject,
  options: Omit<DeleteOptions, "uid">,
): Promise<boolean> {
  try {
    await client.delete(resource, { namespace, name }, { ...options, uid });
    return true;
  } catch (error) {
    if (!isConflict(error)) {
      throw error;
    }
    return false;
  }
}
