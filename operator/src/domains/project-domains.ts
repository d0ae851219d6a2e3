/**
 * The hostnames of a project within its reconcile: claimed, routed, released and reported, in an order in which no hostname
 * routes to two projects. What lives in this folder is listed in `controller.ts`.
 */

import {
  type ConditionSet,
  controllerOf,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import type { Project, ProjectConditionCatalog, ProjectStatus } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { admittedCidrs } from "../applications/access.ts";
import type { Rollout } from "../applications/rollout.ts";
import { type HttpPlatform, wantedHost } from "../applications/view.ts";
import { childrenOf, type ProjectStores } from "../projects/stores.ts";
import { type Claimed, claimDomains } from "./project-claims.ts";
import { customDomainStatuses, setCustomDomainsReady } from "./project-status.ts";
import { type Release, releaseAllDomains, releaseDomains } from "./release.ts";
import type { RouteCheck } from "./route-check.ts";
import { checkRoutes, type Routes, type RouteVersions, routeVersions } from "./routes.ts";

export interface DomainDependencies {
  client: KubeClient;
  clock: Clock;
  stores: ProjectStores;
  platform: HttpPlatform;
  routeCheck: RouteCheck;
}

/** Whether the ingress can enforce the access list of a project. */
export function isEnforced({ spec }: Project, { ingress }: Pick<HttpPlatform, "ingress">): boolean {
  return ingress.allowList !== "none" || admittedCidrs(spec.networkAccess) === undefined;
}

/** Whether the platform has created an Ingress for this very project, and does not delete it. */
export function isOwnIngress({ metadata: { uid } }: Project, ingress: KubernetesObject): boolean {
  return !ingress.metadata?.deletionTimestamp && controllerOf(ingress)?.uid === uid;
}

/** Reconciles the hostnames of projects: the steps of one reconcile. */
export class ProjectDomains {
  readonly #deps: DomainDependencies;

  constructor(deps: DomainDependencies) {
    this.#deps = deps;
  }

  /**
   * Deletes the routes of a project that has become private, or whose access list the ingress cannot enforce: before
   * everything else, so that no other fault of the project keeps it open.
   */
  async close(project: Project, signal: AbortSignal): Promise<void> {
    const { client, platform, stores } = this.#deps;
    const isOpen = wantedHost(project, platform.domainZone) !== undefined && isEnforced(project, platform);
    if (project.spec.type !== "http" || isOpen) {
      return;
    }
    for (const ingress of childrenOf(stores, resources.ingresses, project)) {
      const { name = "", namespace, uid } = ingress.metadata ?? {};
      if (isOwnIngress(project, ingress)) {
        await client.delete(resources.ingresses, { name, namespace }, { uid, signal });
      }
    }
  }

  /** Claims every hostname that the project requests and may have. */
  claim(project: Project, organization: string, signal: AbortSignal): Promise<Claimed> {
    return claimDomains(project, organization, this.#deps, signal);
  }

  /** The routes as they are, to compare with those after the project's objects are applied. */
  versions(project: Project): RouteVersions {
    return routeVersions(this.#deps.stores, project);
  }

  /** Whether the routes are in place. */
  check(project: Project, claimed: Claimed, rollout: Rollout, before: RouteVersions): Routes {
    return checkRoutes(project, claimed, rollout, before, this.#deps);
  }

  /** Releases what the project no longer requests. */
  release(project: Project, claimed: Claimed, routes: Routes, signal: AbortSignal): Promise<Release> {
    return releaseDomains(project, claimed, routes, this.#deps, signal);
  }

  /** Releases everything, of a project that is being deleted and whose Ingresses no longer exist. */
  async releaseAll(project: Project, signal: AbortSignal): Promise<Release> {
    const release = await releaseAllDomains(project, this.#deps, signal);
    if (release.left === 0) {
      this.#deps.routeCheck.forget(project);
    }
    return release;
  }

  /** Writes what was found into conditions and status, `DomainReady` apart. */
  report(
    project: Project,
    claimed: Claimed,
    routes: Routes,
    release: Release,
    { conditions, status }: { conditions: ConditionSet<ProjectConditionCatalog>; status: ProjectStatus },
  ): void {
    const { host, wanted = "", customs: hosts, organization } = claimed;
    const issues = this.#deps.platform.ingress.certificateIssuer !== undefined;
    const found = { hosts, routes: routes.customs, organization, target: host ?? wanted, issues };
    status.customDomains = hosts.length > 0 ? customDomainStatuses(found) : undefined;
    setCustomDomainsReady(found, conditions);
    status.exposure = exposureAfter(project, this.#exposureProgress(project, claimed, routes, release));
  }

  #exposureProgress(
    project: Project,
    { host, refused }: Claimed,
    { missing }: Routes,
    { left, routed = new Set(this.versions(project).keys()) }: Release,
  ): ExposureProgress {
    if (project.spec.exposure === "private") {
      return left === 0 && routed.size === 0 ? "done" : "moving";
    }
    if (refused && host === undefined) {
      return "refused";
    }
    // A route without an instance behind it is in place; it is not checked again automatically.
    return missing?.retryAfterMs === undefined ? "done" : "moving";
  }
}

// `status.exposure`: the current exposure, and the change under way. Pure.

type Exposure = ProjectStatus["exposure"];

/** Before anything is done: a change runs from the moment in which the spec asks for another exposure. */
export function exposureAtStart({ spec, status }: Project): Exposure {
  if (spec.exposure === undefined) {
    return undefined;
  }
  const current = status?.exposure?.current ?? spec.exposure;
  return current === spec.exposure && !status?.exposure?.changing ? { current } : { current, changing: true };
}

/** The progress of the routes and claims in a reconcile. */
export type ExposureProgress =
  /** They are as desired. */
  | "done"
  /** They are changing. */
  | "moving"
  /** They cannot become as desired: the project is not reachable, and no change is under way. */
  | "refused";

/** After a reconcile. A change that began ends with `done` or `refused`; later troubles of a route are no change of exposure. */
export function exposureAfter(project: Project, progress: ExposureProgress): Exposure {
  const start = exposureAtStart(project);
  const { exposure } = project.spec;
  if (!start?.changing || exposure === undefined) {
    return start;
  }
  switch (progress) {
    case "done":
      return { current: exposure };
    case "moving":
      return start;
    case "refused":
      return { current: start.current };
  }
}
