/** Checks whether the routes of a project are in place. */

import { isConditionTrue, type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import type { Rollout } from "../applications/rollout.ts";
import { shortestDelay } from "../projects/kind.ts";
import { childrenOf, type ProjectStores } from "../projects/stores.ts";
import { isAtActivator } from "../sleep/decision.ts";
import { tlsSecretName } from "./desired/ingress.ts";
import type { Claimed } from "./project-claims.ts";
import type { CustomRoute } from "./project-status.ts";
import type { MissingRoute, RouteCheck } from "./route-check.ts";

export interface RouteDependencies {
  stores: ProjectStores;
  routeCheck: RouteCheck;
}

/** The state of the routes that are written. */
export interface Routes {
  /** Why the default domain's is not in place. */
  missing?: MissingRoute;
  /** Of the verified custom domains. */
  customs: ReadonlyMap<string, CustomRoute>;
  /** When to check again, in milliseconds. */
  retryAfterMs?: number;
}

/** An Ingress, as far as it is read here. */
export type IngressView = KubernetesObject & { spec?: { rules?: { host?: string }[] } };

/** The hostnames that an Ingress routes; a rule of the platform's own always has one. */
export function hostsOf({ spec }: IngressView): string[] {
  return (spec?.rules ?? []).flatMap(({ host }) => (host === undefined ? [] : [host]));
}

/** Versions of a project's Ingresses by hostname: they show that a route was written. */
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

/** Checks the routes at the ingress, only where a route, or the instances behind it, are new. Waits for no answer. */
export function checkRoutes(
  project: Project,
  claimed: Claimed,
  rollout: Rollout,
  before: RouteVersions,
  deps: RouteDependencies,
): Routes {
  const now = routeVersions(deps.stores, project);
  const checked = new Set<string>();
  const waits: (number | undefined)[] = [];
  const check = (host: string, isKnown: boolean) => {
    const written = now.get(host) !== before.get(host);
    if (isKnown && !written && !deps.routeCheck.isOpen(project, host)) {
      return undefined;
    }
    // While it sleeps, the activator answers in place of its instances.
    const isAnswered = rollout.serving > 0 || isAtActivator(project.status?.sleep);
    if (!isAnswered || project.spec.paused) {
      return isKnown && !written ? undefined : WAITS_FOR_INSTANCE;
    }
    checked.add(host);
    const missing = deps.routeCheck.check(project, host, written);
    waits.push(missing?.retryAfterMs);
    // A route that was in place stays so until the ingress answers otherwise.
    return isKnown && missing?.unanswered ? undefined : missing;
  };
  const { host } = claimed;
  const missing = host === undefined ? undefined : check(host, isDefaultKnown(project, host, rollout));
  const customs = claimed.customs
    .filter(({ is }) => is === "verified")
    .map(({ hostname }) => ({
      hostname,
      missing: check(hostname, isCustomKnown(project, hostname)),
      certified: isCertified(project, hostname, deps.stores),
    }));
  deps.routeCheck.retain(project, "serves", checked);
  return {
    missing,
    customs: new Map(customs.map(({ hostname, ...route }) => [hostname, route])),
    retryAfterMs: shortestDelay(...waits),
  };
}

const WAITS_FOR_INSTANCE: MissingRoute = {
  reason: "DomainPending",
  message: "The route waits for an instance.",
};

/** The status has the route in place, and nothing has happened since that makes a check worthwhile. */
function isDefaultKnown({ spec, status }: Project, host: string, rollout: Rollout): boolean {
  const known = isConditionTrue(status?.conditions, "DomainReady") && status?.domain === host;
  return known && (isConditionTrue(status?.conditions, "Ready") || !rollout.complete || spec.paused === true);
}

function isCustomKnown({ status }: Project, host: string): boolean {
  return status?.customDomains?.find(({ hostname }) => hostname === host)?.status === "active";
}

function isCertified({ metadata }: Project, host: string, { secrets }: ProjectStores): boolean {
  const secret = secrets.get(metadata.namespace, tlsSecretName(metadata.name, host));
  return secret !== undefined && !secret.metadata?.deletionTimestamp;
}
