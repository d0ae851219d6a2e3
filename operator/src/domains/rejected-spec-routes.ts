/**
 * The routes of a project whose spec is rejected: existing routes stay, but never for clients whom the spec does not
 * admit, nor from a hostname that it no longer requests. A project without a route gets none.
 */

import {
  type Applier,
  type KubeClient,
  type ObjectContext,
  outcomeOfError,
  resources,
} from "@slipway/controller-runtime";
import { organizationOfNamespace, type Project, type ProjectConditionCatalog } from "@slipway/crds";
import { isRestricted, type MiddlewareView } from "../applications/access-list.ts";
import { routes } from "../applications/desired.ts";
import type { Rollout } from "../applications/rollout.ts";
import { type HttpPlatform, toRoutedApp, wantedHost } from "../applications/view.ts";
import { ownerOf, shortestDelay } from "../projects/kind.ts";
import { type Finding, summarizeRoute } from "../projects/status.ts";
import { childOf, childrenOf, type ProjectStores } from "../projects/stores.ts";
import { middlewareResource } from "../resources.ts";
import { isAtActivator } from "../sleep/decision.ts";
import { type Claimed, routedHosts } from "./project-claims.ts";
import { exposureAfter, isEnforced, isOwnIngress, type ProjectDomains } from "./project-domains.ts";
import type { Release } from "./release.ts";
import type { Routes } from "./routes.ts";

export interface RejectedSpecRoutesDependencies {
  client: KubeClient;
  stores: ProjectStores;
  platform: HttpPlatform;
  applier: Applier;
  domains: ProjectDomains;
}

type Context = ObjectContext<Project, ProjectConditionCatalog>;

/** Delay before routes that could not be reconciled are tried again. */
const RETRY_MS = 5_000;

const WAITS: Finding = { reason: "DomainPending", message: "The route waits until the project is as asked." };

export class RejectedSpecRoutes {
  readonly #deps: RejectedSpecRoutesDependencies;

  constructor(deps: RejectedSpecRoutesDependencies) {
    this.#deps = deps;
  }

  /**
   * Reconciles existing routes with the spec; when that fails, deletes those that would admit more than the spec does.
   * @param rollout the state of the existing instances
   * @returns milliseconds until it is to be called again; undefined when nothing is left to do
   */
  async reconcile(project: Project, rollout: Rollout, context: Context): Promise<number | undefined> {
    const organization = organizationOfNamespace(project.metadata.namespace ?? "");
    if (project.spec.type !== "http" || organization === undefined) {
      return undefined;
    }
    try {
      return await this.#reconcile(project, organization, rollout, context);
    } catch (error) {
      const { visible, reason } = outcomeOfError(error);
      context.log.warn({ err: error, reason }, "the routes of a project could not be reconciled");
      if (visible) {
        await this.#deleteOpen(project, organization, context);
      }
      return RETRY_MS;
    }
  }

  async #reconcile(
    project: Project,
    organization: string,
    rollout: Rollout,
    context: Context,
  ): Promise<number | undefined> {
    const { domains } = this.#deps;
    const { signal, conditions, status } = context;
    const isPublic = this.#wanted(project) !== undefined;
    const before = domains.versions(project);
    const routed = isPublic && isEnforced(project, this.#deps.platform) && this.#live(project).length > 0;
    const claimed = routed
      ? await domains.claim(project, organization, signal)
      : this.#claimedBySpec(project, organization);
    if (routed) {
      await this.#apply(project, claimed, context);
    }
    const found: Routes = routed
      ? await domains.check(project, claimed, rollout, before)
      : { customs: new Map() };
    const release: Release = await domains.release(project, claimed, found, signal);
    if (routed || !isPublic) {
      const missing = claimed.refused ?? found.missing;
      summarizeRoute(isPublic ? { host: claimed.host, missing } : undefined, conditions, status);
      domains.report(project, claimed, found, release, context);
    } else {
      this.#setWaiting(context);
      status.exposure = exposureAfter(project, "refused");
    }
    return shortestDelay(found.retryAfterMs, release.retryAfterMs);
  }

  async #apply(project: Project, claimed: Claimed, { log, signal, status }: Context): Promise<void> {
    const { applier, platform } = this.#deps;
    const sleep = { routed: isAtActivator(status.sleep) };
    const app = toRoutedApp(project, claimed.organization, routedHosts(claimed), platform);
    const prune = [resources.ingresses, middlewareResource];
    await applier.applyAndPrune(ownerOf(project), routes({ ...app, sleep }), { log, signal, prune });
  }

  async #deleteOpen(project: Project, organization: string, context: Context): Promise<void> {
    const { client, platform, stores } = this.#deps;
    const app = toRoutedApp(project, organization, { host: this.#wanted(project) }, platform);
    const { route } = app;
    if (!route) {
      return;
    }
    const middleware = childOf<MiddlewareView>(stores, middlewareResource, project);
    for (const ingress of this.#live(project)) {
      if (!isRestricted(ingress, middleware, app, route)) {
        const { name = "", namespace, uid } = ingress.metadata ?? {};
        await client.delete(resources.ingresses, { name, namespace }, { uid, signal: context.signal });
        this.#setWaiting(context);
      }
    }
  }

  /** Reports the removed route of a project that had one. */
  #setWaiting({ conditions, status }: Context): void {
    if (conditions.isTrue("DomainReady")) {
      summarizeRoute({ missing: WAITS }, conditions, status);
    }
  }

  /** Every hostname in the spec counts as the project's: its claims are kept, and none is created. */
  #claimedBySpec(project: Project, organization: string): Claimed {
    const wanted = this.#wanted(project);
    const hostnames = wanted === undefined ? [] : (project.spec.customDomains ?? []);
    const customs = hostnames.map((hostname) => ({ hostname, is: "unverified", why: WAITS }) as const);
    return { organization, wanted, host: wanted, customs };
  }

  #wanted(project: Project): string | undefined {
    return wantedHost(project, this.#deps.platform.domainZone);
  }

  #live(project: Project) {
    return childrenOf(this.#deps.stores, resources.ingresses, project).filter((ingress) =>
      isOwnIngress(project, ingress),
    );
  }
}
