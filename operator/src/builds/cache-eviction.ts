/** Room for a new cache where the quota of builds is full: nobody's caches keep another organization from building. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import { CACHE_LABEL } from "./names.ts";

/** The cache that gives way: of the organization that has most, its oldest that no build uses now. Pure. */
export function cacheToRemove(
  caches: readonly KubernetesObject[],
  isUsed: (cache: string) => boolean,
): KubernetesObject | undefined {
  const organizations = Map.groupBy(caches, ({ metadata }) => metadata?.labels?.[labels.organization]);
  return [...organizations.values()]
    .toSorted((a, b) => b.length - a.length)
    .map((own) => own.filter(({ metadata }) => !isUsed(metadata?.name ?? "")).toSorted(byCreation)[0])
    .find((cache) => cache !== undefined);
}

const byCreation = (a: KubernetesObject, b: KubernetesObject): number => createdAt(a) - createdAt(b);

/** In milliseconds. */
const createdAt = ({ metadata }: KubernetesObject): number =>
  Date.parse(String(metadata?.creationTimestamp ?? "")) || 0;

/**
 * Removes a cache in whose place another one may come; none while one is being removed already.
 * @param isUsed whether a build has the cache now
 * @returns whether there will be room
 */
export async function makeRoom(
  client: KubeClient,
  namespace: string,
  isUsed: (cache: string) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const caches = await client.listAll<KubernetesObject>(resources.persistentVolumeClaims, {
    namespace,
    labelSelector: CACHE_LABEL,
    signal,
  });
  if (caches.some(({ metadata }) => metadata?.deletionTimestamp !== undefined)) {
    return true;
  }
  const { name = "", uid } = cacheToRemove(caches, isUsed)?.metadata ?? {};
  if (name === "") {
    return false;
  }
  await client.delete(resources.persistentVolumeClaims, { namespace, name }, { uid, signal });
  return true;
}
