/** Releases the hostnames that a project no longer requests, and deletes their certificates. */

import { findCondition, type KubeClient, resources } from "@slipway/controller-runtime";
import { type DomainClaim, labels, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { shortestDelay } from "../projects/kind.ts";
import type { ProjectStores } from "../projects/stores.ts";
import { claimsOf, deleteClaim, keptAheadMs } from "./claims.ts";
import { isTlsSecret, tlsSecretName } from "./desired/ingress.ts";
import type { Claimed } from "./project-claims.ts";
import type { RouteCheck } from "./route-check.ts";
import { hostsOf, type IngressView, type Routes } from "./routes.ts";

export interface ReleaseDependencies {
  client: KubeClient;
  clock: Clock;
  stores: Pick<ProjectStores, "claims" | "secrets">;
  routeCheck: RouteCheck;
}

/** What is left of claims that are to be deleted. */
export interface Release {
  left: number;
  /** Hostnames that were routed when they were last read live; absent when there was no need to. */
  routed?: ReadonlySet<string>;
  retryAfterMs?: number;
}

/** How long a former default domain stays claimed while the new one does not answer, in milliseconds. */
const HANDOVER_MS = 5_000;
/** Delay before the deletion of a claim is tried again. */
const RETRY_MS = 300;

/**
 * Releases what is no longer requested, once it is no longer routed. A former default domain stays until the new one
 * answers: a client that finds the old one released can use the new one.
 */
export async function releaseDomains(
  project: Project,
  claimed: Claimed,
  routes: Routes,
  deps: ReleaseDependencies,
  signal: AbortSignal,
): Promise<Release> {
  const now = deps.clock.now();
  const handover = routes.missing?.retryAfterMs !== undefined && isInHandover(project, now);
  const unwanted = unwantedClaims(project, claimed, deps);
  const due: DomainClaim[] = [];
  let retryAfterMs: number | undefined;
  for (const claim of unwanted) {
    const aheadMs = keptAheadMs(claim, project, now);
    if (aheadMs > 0) {
      retryAfterMs = shortestDelay(retryAfterMs, aheadMs);
    } else if (handover && claim.spec.kind !== "custom") {
      retryAfterMs = shortestDelay(retryAfterMs, RETRY_MS);
    } else {
      due.push(claim);
    }
  }
  const routed = due.length > 0 ? await routedHostsLive(project, deps.client, signal) : undefined;
  const { free, retryAfterMs: removedInMs } = withoutRoute(project, due, routed, deps.routeCheck);
  const released = await deleteAll(free, deps.client, signal);
  await deleteCertificates(project, claimed, deps, signal);
  // The claim of an expired domain is deleted once the status reports that it has expired.
  const isUnreported = claimed.customs.some((host) => host.is === "expired" && host.kept);
  const changed = released < free.length || due.some(({ metadata }) => routed?.has(metadata.name));
  const again = isUnreported || changed ? RETRY_MS : undefined;
  retryAfterMs = shortestDelay(retryAfterMs, removedInMs, again);
  return { left: unwanted.length - released, routed, retryAfterMs };
}

/**
 * Releases every hostname of a project that is being deleted and whose Ingresses no longer exist, once the ingress has
 * noticed: a hostname's next holder must not receive the traffic of this project.
 */
export async function releaseAllDomains(
  project: Project,
  { client, stores, routeCheck }: Pick<ReleaseDependencies, "client" | "stores" | "routeCheck">,
  signal: AbortSignal,
): Promise<Release> {
  const claimed = claimsOf(project, stores.claims);
  const { free, retryAfterMs } = withoutRoute(project, claimed, undefined, routeCheck);
  const released = await deleteAll(free, client, signal);
  const again = released < free.length ? RETRY_MS : undefined;
  return { left: claimed.length - released, retryAfterMs: shortestDelay(retryAfterMs, again) };
}

function unwantedClaims(
  project: Project,
  { host, customs }: Claimed,
  { stores }: ReleaseDependencies,
): DomainClaim[] {
  const kept = customs.filter((custom) => custom.is !== "expired" || custom.kept);
  const keep = new Set([host, ...kept.map(({ hostname }) => hostname)]);
  return claimsOf(project, stores.claims).filter(
    ({ metadata }) => !keep.has(metadata.name) && !metadata.deletionTimestamp,
  );
}

/** For a few seconds after the default domain stopped to be the desired one. */
function isInHandover({ status }: Project, now: Date): boolean {
  const ready = findCondition(status?.conditions, "DomainReady");
  const sinceMs = now.getTime() - Date.parse(ready?.lastTransitionTime ?? "");
  return ready?.status === "True" || sinceMs < HANDOVER_MS;
}

/** Claims whose hostnames are no longer routed: by no Ingress, nor by what the ingress has loaded of one. */
function withoutRoute(
  project: Project,
  due: readonly DomainClaim[],
  routed: ReadonlySet<string> | undefined,
  routeCheck: RouteCheck,
): { free: DomainClaim[]; retryAfterMs?: number } {
  const unrouted = due.filter(({ metadata }) => !routed?.has(metadata.name));
  routeCheck.retain(project, "removed", new Set(unrouted.map(({ metadata }) => metadata.name)));
  const checked = unrouted.map((claim) => ({ claim, ...routeCheck.isRemoved(project, claim.metadata.name) }));
  return {
    free: checked.filter(({ removed }) => removed).map(({ claim }) => claim),
    retryAfterMs: shortestDelay(...checked.map(({ retryAfterMs }) => retryAfterMs)),
  };
}

/** The hostnames that are routed to the project now: the stores may be stale, and an Ingress that is being deleted still routes. */
async function routedHostsLive(
  { metadata: { namespace, name } }: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Set<string>> {
  const labelSelector = `${labels.project}=${name}`;
  const live = await client.listAll<IngressView>(resources.ingresses, { namespace, labelSelector, signal });
  return new Set(live.flatMap(hostsOf));
}

/** Returns how many were deleted: one that changed meanwhile has to be read again. */
async function deleteAll(
  claims: readonly DomainClaim[],
  client: KubeClient,
  signal: AbortSignal,
): Promise<number> {
  let deleted = 0;
  for (const { metadata } of claims) {
    deleted += (await deleteClaim(metadata, client, signal)) ? 1 : 0;
  }
  return deleted;
}

/** Certificates of domains that the project does not have any more; cert-manager leaves them behind. */
async function deleteCertificates(
  { metadata: { namespace, name: id } }: Project,
  { customs }: Claimed,
  { client, stores }: ReleaseDependencies,
  signal: AbortSignal,
): Promise<void> {
  const wanted = new Set(customs.map(({ hostname }) => tlsSecretName(id, hostname)));
  for (const { metadata = {} } of stores.secrets.byIndex(labels.project, id)) {
    const { name = "", uid } = metadata;
    const stale = metadata.namespace === namespace && isTlsSecret(id, name) && !wanted.has(name);
    if (stale && !metadata.deletionTimestamp) {
      await client.delete(resources.secrets, { name, namespace }, { uid, signal });
    }
  }
}
