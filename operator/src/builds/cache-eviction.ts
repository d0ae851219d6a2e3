/** Evicts a cache where the storage quota of builds is full, so that one organization's caches do not block another's builds. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import { CACHE_LABEL } from "./names.ts";

/** The cache to evict: the oldest unused one of the organization that has most. Pure. */
export function cacheToEvict(
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
 * Deletes one cache; none while another is being deleted.
 * @param isUsed whether a build uses the cache now
 * @returns whether the quota will have space
 */
export async function evictCache(
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
  const { name = "", uid } = cacheToEvict(caches, isUsed)?.metadata ?? {};
  if (name === "") {
    return false;
  }
  await client.delete(resources.persistentVolumeClaims, { namespace, name }, { uid, signal });
  return true;
}
