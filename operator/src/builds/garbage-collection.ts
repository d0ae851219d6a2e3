/** Deletes what outlives builds: caches of projects that were deleted or no longer build, images that no rollback can use. */

import { type KubeClient, type KubernetesObject, resources, type Store } from "@slipway/controller-runtime";
import { type Build, labels, mintRegistryToken, organizationNamespace, type Project } from "@slipway/crds";
import { SsrfSafeFetch } from "@slipway/git";
import type { RetiredImage } from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { rollbackOf } from "../projects/images/built-image.ts";
import { projectResource } from "../resources.ts";
import { CACHE_LABEL, cacheName } from "./names.ts";
import type { BuildSettings } from "./settings.ts";

/** Deletes an image from the builds' registry, if it exists. @throws Error */
export type DeleteImage = (repository: string, digest: string, signal: AbortSignal) => Promise<void>;

export interface GarbageCollectorOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  projects: Store<Project>;
  builds: Store<Build>;
  settings: () => BuildSettings;
  retired: {
    list: () => Promise<RetiredImage[]>;
    forget: (image: RetiredImage) => Promise<void>;
  };
  deleteImage: DeleteImage;
}

const PERIOD_MS = 600_000;
/** A claim may be created before the cache contains its project. */
const CACHE_MIN_AGE_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** Deletions in one round; the rest follows in the next one. */
const MAX_DELETIONS = 200;

/** Collects every ten minutes until the signal aborts. */
export async function runGarbageCollector(
  options: GarbageCollectorOptions,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = options;
  while (!signal.aborted) {
    for (const [what, clear] of [
      ["caches of builds", deleteUnusedCaches],
      ["images of builds", deleteRetiredImages],
    ] as const) {
      await clear(options, signal).catch((error: unknown) => {
        if (!signal.aborted) {
          log.warn({ err: error }, `${what} could not be garbage-collected`);
        }
      });
    }
    await sleep(clock, PERIOD_MS, signal).catch(() => undefined);
  }
}

/** When a project last used its cache, as far as its status shows: the claim's own age counts, too. */
function lastBuiltAt({ status }: Project): number {
  const times = [status?.build?.imageBuildAt, status?.buildFailure?.at];
  return Math.max(0, ...times.map((time) => Date.parse(time ?? "") || 0));
}

/** Deletes the caches of projects that were deleted, or have not built for `cache.unusedDays`. @returns how many */
export async function deleteUnusedCaches(
  { client, clock, projects, builds, settings }: GarbageCollectorOptions,
  signal: AbortSignal,
): Promise<number> {
  if (!projects.hasSynced || !builds.hasSynced) {
    return 0;
  }
  const { namespace, cache } = settings();
  const claims = await client.list<KubernetesObject>(resources.persistentVolumeClaims, {
    namespace,
    labelSelector: CACHE_LABEL,
    signal,
  });
  const now = clock.now().getTime();
  const ageOf = ({ metadata }: KubernetesObject) =>
    now - (Date.parse(String(metadata?.creationTimestamp ?? "")) || 0);
  const isOld = (claim: KubernetesObject) => ageOf(claim) > CACHE_MIN_AGE_MS;
  const unusedMs = cache.unusedDays * DAY_MS;
  // Any existing Build, ended or not, means that the cache is in use.
  const building = new Set(
    builds.list().map(({ metadata, spec }) => `${metadata.namespace}/${spec.projectRef.name}`),
  );
  const isInUse = (project: Project): boolean =>
    now - lastBuiltAt(project) <= unusedMs ||
    building.has(`${project.metadata.namespace}/${project.metadata.name}`);
  const nameOf = ({ metadata: { name, uid = "" } }: Project): string => cacheName({ id: name, uid });
  const without = (known: readonly Project[]) => {
    const all = new Set(known.map(nameOf));
    const inUse = new Set(known.filter(isInUse).map(nameOf));
    return (claim: KubernetesObject) =>
      !(ageOf(claim) > unusedMs ? inUse : all).has(claim.metadata?.name ?? "");
  };
  const suspects = claims.items
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
    .filter(isOld)
    .filter(without(projects.list()));
  if (suspects.length === 0) {
    return 0;
  }
  // The cache of projects may be behind: only the live state is proof.
  const live = await client.list<Project>(projectResource, { signal });
  const unused = suspects.filter(without(live.items)).slice(0, MAX_DELETIONS);
  for (const { metadata } of unused) {
    const { name = "", uid } = metadata ?? {};
    await client.delete(resources.persistentVolumeClaims, { namespace, name }, { uid, signal });
  }
  return unused.length;
}

/** Digests that a project runs, or can roll back to. */
export function digestsInUse(project: Project): Set<string> {
  const { spec, status } = project;
  const { image, build, deployments = [] } = status ?? {};
  const digests = [
    spec.image?.digest,
    image?.digest,
    build?.image?.digest,
    rollbackOf(project)?.digest,
    ...deployments.flatMap((one) => [one.image.digest, one.settings.image?.digest]),
  ];
  return new Set(digests.filter((digest) => digest !== undefined));
}

/**
 * Deletes images that no build of the history has any more and that no project needs. One that cannot be deleted does not
 * block the others.
 * @returns how many
 * @throws the first error, once all have been tried
 */
export async function deleteRetiredImages(
  { client, projects, retired, deleteImage }: GarbageCollectorOptions,
  signal: AbortSignal,
): Promise<number> {
  if (!projects.hasSynced) {
    return 0;
  }
  let deleted = 0;
  const errors: unknown[] = [];
  for (const image of await retired.list()) {
    if (deleted + errors.length >= MAX_DELETIONS || signal.aborted) {
      break;
    }
    const ref = { namespace: organizationNamespace(image.organization_id), name: image.project_id };
    const isUsed = (project: Project | undefined) => project && digestsInUse(project).has(image.digest);
    if (isUsed(projects.get(ref.namespace, ref.name))) {
      continue;
    }
    if (isUsed(await client.getOrUndefined<Project>(projectResource, ref, { signal }))) {
      continue;
    }
    try {
      await deleteImage(`${image.organization_id}/${image.project_id}`, image.digest, signal);
      await retired.forget(image);
      deleted += 1;
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) {
    throw errors[0];
  }
  return deleted;
}

const TOKEN_SECONDS = 60;
/** Answer for an image that does not exist. */
const NOT_FOUND = 404;
const ACCEPTED = 202;

/** Deletes with a token for the one repository. */
export function imageDeleter(settings: () => BuildSettings, registryKey: () => string): DeleteImage {
  return async (repository, digest, signal) => {
    const { host, ca } = settings().registry;
    const allowedHosts = [host.includes(":") ? host : `${host}:443`];
    const fetch = new SsrfSafeFetch({ allowedHosts, ...(ca === "" ? {} : { ca }) });
    const token = mintRegistryToken(
      registryKey(),
      "leftovers",
      [{ repository, actions: ["delete"] }],
      TOKEN_SECONDS,
    );
    try {
      const { status } = await fetch.send(`https://${host}/v2/${repository}/manifests/${digest}`, {
        method: "DELETE",
        headers: { authorization: `Bearer ${token}` },
        signal,
      });
      if (status !== ACCEPTED && status !== NOT_FOUND) {
        throw new Error(`the registry of builds answers ${status} to the deletion of an image`);
      }
    } finally {
      await fetch.close();
    }
  };
}

// Evicts a cache where the storage quota of builds is full, so that one organization's caches do not block another's builds.

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
