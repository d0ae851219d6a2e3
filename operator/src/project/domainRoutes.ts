/** Whether the routes of a project are in place. */

import type { Project } from "@slipway/crds";
import { type KubernetesObject, resources } from "@slipway/kube";
import { isConditionTrue } from "../runtime/index.ts";
import type { CustomRoute } from "./customDomains.ts";
import type { Claimed } from "./domainClaims.ts";
import { tlsSecretName } from "./http/customIngress.ts";
import type { Rollout } from "./http/rollout.ts";
import type { MissingRoute, RouteCheck } from "./http/routeCheck.ts";
import { soonest } from "./soonest.ts";
import { childrenOf, type ProjectStores } from "./stores.ts";

export interface RouteDependencies {
  stores: ProjectStores;
  routeCheck: RouteCheck;
}

/** What was found out about the routes that are written. */
export interface Routes {
  /** What is missing on the default domain's. */
  missing?: MissingRoute;
  /** Of the verified custom domains. */
  customs: ReadonlyMap<string, CustomRoute>;
  /** When to look again by ourselves. */
  retryAfterMs?: number;
}

/** An Ingress, as far as it is read here. */
export type IngressView = KubernetesObject & { spec?: { rules?: { host?: string }[] } };

/** What an Ingress leads from; of the platform's own, a rule always has a host. */
export function hostsOf({ spec }: IngressView): string[] {
  return (spec?.rules ?? []).flatMap(({ host }) => (host === undefined ? [] : [host]));
}

/** Versions of a project's Ingresses by hostname: what tells that a route was written. */
export type RouteVersions = ReadonlyMap<string, string>;

/** The routes as the stores have them. */
export function routeVersions(stores: ProjectStores, project: Project): RouteVersions {
  const ingresses = childrenOf<IngressView>(stores, resources.ingresses, project);
  return new Map(
    ingresses.flatMap((ingress) =>
      hostsOf(ingress).map((host) => [host, ingress.metadata?.resourceVersion ?? ""] as const),
    ),
  );
}

/** Asks the ingress about the routes, only where a route, or the instances behind it, are new. */
export async function checkRoutes(
  project: Project,
  claimed: Claimed,
  rollout: Rollout,
  before: RouteVersions,
  deps: RouteDependencies,
): Promise<Routes> {
  const now = routeVersions(deps.stores, project);
  const written = (host: string) => now.get(host) !== before.get(host);
  const verified = claimed.customs.filter(({ is }) => is === "verified");
  const ask = (host: string) => askIngress(project, host, rollout, deps);
  const { host } = claimed;
  const [missing, ...customs] = await Promise.all([
    host === undefined || isDefaultKnown(project, host, written(host), rollout) ? undefined : ask(host),
    ...verified.map(async ({ hostname }) => ({
      hostname,
      missing: isCustomKnown(project, hostname, written(hostname)) ? undefined : await ask(hostname),
      certified: isCertified(project, hostname, deps.stores),
    })),
  ]);
  return {
    missing,
    customs: new Map(customs.map(({ hostname, ...route }) => [hostname, route])),
    retryAfterMs: soonest(
      ...[missing, ...customs.map((route) => route.missing)].map((each) => each?.retryAfterMs),
    ),
  };
}

function isDefaultKnown(
  { spec, status }: Project,
  host: string,
  written: boolean,
  rollout: Rollout,
): boolean {
  const known = !written && isConditionTrue(status?.conditions, "DomainReady") && status?.domain === host;
  return known && (isConditionTrue(status?.conditions, "Ready") || !rollout.complete || spec.paused === true);
}

function isCustomKnown({ status }: Project, host: string, written: boolean): boolean {
  const told = status?.customDomains?.find(({ hostname }) => hostname === host);
  return !written && told?.status === "active";
}

async function askIngress(
  { metadata, spec }: Project,
  host: string,
  rollout: Rollout,
  { routeCheck }: RouteDependencies,
): Promise<MissingRoute | undefined> {
  if (rollout.serving === 0 || spec.paused) {
    return { reason: "DomainPending", message: "The route waits for an instance." };
  }
  return routeCheck.check(metadata.uid ?? "", host);
}

function isCertified({ metadata }: Project, host: string, { secrets }: ProjectStores): boolean {
  const secret = secrets.get(metadata.namespace, tlsSecretName(metadata.name, host));
  return secret !== undefined && !secret.metadata?.deletionTimestamp;
}
