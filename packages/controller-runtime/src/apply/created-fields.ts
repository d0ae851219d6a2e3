/**
 * Fields of an object that was created by a POST. Its field manager owns them by an `Update`, which a later apply of the same manager does
 * not give up: what that apply leaves out would stay. So they become fields that it owns by an `Apply` first, as client-go's
 * `csaupgrade` does for kubectl.
 */

import type { KubeClient } from "../client/client.ts";
import { type KubernetesObject, type Resource, refOf } from "../client/types.ts";

/** `metadata.managedFields[]`, as far as it is read here. `fieldsV1` is a tree of fields, whose leaves are empty. */
interface ManagedFieldsEntry {
  manager?: string;
  operation?: "Apply" | "Update";
  subresource?: string;
  fieldsV1?: FieldTree;
}

interface FieldTree {
  [field: string]: FieldTree;
}

/**
 * Makes the fields that a field manager owns by an `Update` its own by an `Apply`. One GET, and one PATCH where there are any.
 * @param live the object as it was read
 * @returns it as it is then; as it was read when it has changed since
 * @throws KubeError 409 when it changes meanwhile
 */
export async function ownByApply(
  live: KubernetesObject,
  resource: Resource,
  { client, fieldManager, signal }: { client: KubeClient; fieldManager: string; signal?: AbortSignal },
): Promise<KubernetesObject> {
  const ref = refOf(live);
  const current = await client.getOrUndefined<KubernetesObject>(resource, ref, { signal });
  const managedFields = ownedByApply(current?.metadata?.managedFields ?? [], fieldManager);
  if (managedFields === undefined) {
    return live;
  }
  const { resourceVersion } = current?.metadata ?? {};
  const patch = [
    { op: "replace", path: "/metadata/managedFields", value: managedFields },
    { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
  ];
  const options = { type: "json", fieldManager, signal } as const;
  const owned = await client.patch<KubernetesObject>(resource, ref, patch, options);
  return resourceVersion === live.metadata?.resourceVersion ? owned : live;
}

/** The entries with those of the manager's updates as one of its applies; undefined when it has none. Pure. */
export function ownedByApply(managedFields: readonly unknown[], manager: string): unknown[] | undefined {
  const entries = managedFields as readonly ManagedFieldsEntry[];
  const isOwn = (entry: ManagedFieldsEntry) => entry.manager === manager && !entry.subresource;
  const own = entries.filter(isOwn);
  if (!own.some(({ operation }) => operation === "Update")) {
    return undefined;
  }
  const fieldsV1 = own.reduce<FieldTree>((all, entry) => union(all, entry.fieldsV1 ?? {}), {});
  const [first] = own;
  return [...entries.filter((entry) => !isOwn(entry)), { ...first, operation: "Apply", fieldsV1 }];
}

function union(a: FieldTree, b: FieldTree): FieldTree {
  const shared = Object.entries(b).map(([field, tree]) => [field, union(a[field] ?? {}, tree)] as const);
  return { ...a, ...Object.fromEntries(shared) };
}
