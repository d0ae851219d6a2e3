/** The hostnames of a project: claimed, routed, given back, in an order in which no name leads to two projects. */

import {
  type DomainClaim,
  isReservedHostname,
  labels,
  type Project,
  type ProjectStatus,
} from "@slipway/crds";
import { type Clock, type KubeClient, type KubernetesObject, resources } from "@slipway/kube";
import { claimHostname, claimsOf, deleteClaim, holds, keptAheadMs } from "../domainclaim/claims.ts";
import { type ConditionSet, controllerOf, findCondition } from "../runtime/index.ts";
import {
  type CustomHost,
  type CustomRoute,
  customDomainStatuses,
  refusalOf,
  standOf,
  takenBy,
  tellCustomDomains,
} from "./customDomains.ts";
import { type ExposureStand, exposureAfter } from "./exposure.ts";
import { isTlsSecret, tlsSecretName } from "./http/customIngress.ts";
import type { Rollout } from "./http/rollout.ts";
import type { MissingRoute, RouteCheck } from "./http/routeCheck.ts";
import { type HttpPlatform, type RoutedHosts, wantedHost } from "./http/view.ts";
import { childrenOf, type ProjectStores } from "./stores.ts";
import type { Finding } from "./summarize.ts";

export interface DomainDependencies {
  client: KubeClient;
  clock: Clock;
  stores: ProjectStores;
  platform: HttpPlatform;
  routeCheck: RouteCheck;
}

/** What a project has of the hostnames that it asks for. */
export interface Claimed {
  organization: string;
  /** The default domain that it asks for; absent of a private project. */
  wanted?: string;
  /** The default domain that may lead to it: the one before, while the one asked for cannot be had. */
  host?: string;
  /** Why the default domain asked for cannot be had. */
  refused?: Finding;
  customs: readonly CustomHost[];
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

/** What is left of claims that are to go. */
export interface Release {
  left: number;
  retryAfterMs?: number;
}

/** How long a former default domain stays claimed while the new one does not answer, in milliseconds. */
const HANDOVER_MS = 5_000;
/** Pause before a claim is looked at again that could not go. */
const RELEASE_RETRY_MS = 500;

/** Versions of a project's Ingresses by hostname: what tells that a route was written. */
export type RouteVersions = ReadonlyMap<string, string>;

type Ingress = KubernetesObject & { spec?: { rules?: { host?: string }[] } };

/** Takes care of the hostnames of projects. */
export class ProjectDomains {
  readonly #deps: DomainDependencies;

  constructor(deps: DomainDependencies) {
    this.#deps = deps;
  }

  /**
   * Takes the routes of a project away that has become private, then its hostnames: before all else, so that nothing
   * that is wrong with it keeps it open.
   */
  async close(project: Project, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    if (wantedHost(project, this.#zone) !== undefined || project.spec.type !== "http") {
      return;
    }
    for (const { metadata } of childrenOf(this.#deps.stores, resources.ingresses, project)) {
      if (metadata && !metadata.deletionTimestamp && isOwn({ metadata }, project)) {
        const { name = "", namespace, uid } = metadata;
        await client.delete(resources.ingresses, { name, namespace }, { uid, signal });
      }
    }
  }

  /** Claims every hostname that the project asks for and may have. */
  async claim(project: Project, organization: string, signal: AbortSignal): Promise<Claimed> {
    const wanted = wantedHost(project, this.#zone);
    if (wanted === undefined) {
      return { organization, customs: [] };
    }
    const refused = await this.#claimDefault(project, wanted, organization, signal);
    const customs: CustomHost[] = [];
    for (const hostname of project.spec.customDomains ?? []) {
      customs.push(await this.#claimCustom(project, hostname, organization, signal));
    }
    const host = refused ? this.#formerHost(project) : wanted;
    return { organization, wanted, host, refused, customs };
  }

  /** The routes as the stores have them. */
  versions(project: Project): RouteVersions {
    const ingresses = childrenOf<Ingress>(this.#deps.stores, resources.ingresses, project);
    return new Map(
      ingresses.flatMap((ingress) =>
        hostsOf(ingress).map((host) => [host, ingress.metadata?.resourceVersion ?? ""] as const),
      ),
    );
  }

  /** Asks the ingress about the routes, only where a route, or the instances behind it, are new. */
  async check(project: Project, claimed: Claimed, before: RouteVersions, rollout: Rollout): Promise<Routes> {
    const now = this.versions(project);
    const written = (host: string) => now.get(host) !== before.get(host);
    const verified = claimed.customs.filter(({ is }) => is === "verified");
    const [missing, ...customs] = await Promise.all([
      claimed.host && this.#checkDefault(project, claimed.host, written(claimed.host), rollout),
      ...verified.map(async ({ hostname }): Promise<[string, CustomRoute & { missing?: MissingRoute }]> => {
        const missing = await this.#checkCustom(project, hostname, written(hostname), rollout);
        return [hostname, { missing, certified: this.#isCertified(project, hostname) }];
      }),
    ]);
    const pauses = [missing || undefined, ...customs.map(([, { missing }]) => missing)];
    return {
      missing: missing || undefined,
      customs: new Map(customs),
      retryAfterMs: soonest(...pauses.map((each) => each?.retryAfterMs)),
    };
  }

  /**
   * Gives back the hostnames that the project does not ask for any more, once no route leads from them. A former default
   * domain stays until the new one answers: who hears that it is free may rely on the new one.
   */
  async release(project: Project, claimed: Claimed, routes: Routes, signal: AbortSignal): Promise<Release> {
    const handover = routes.missing?.retryAfterMs !== undefined && this.#inHandover(project);
    const keep = new Set([
      claimed.host,
      ...claimed.customs.filter((host) => host.is !== "expired" || host.kept).map(({ hostname }) => hostname),
    ]);
    const unwanted = claimsOf(project, this.#deps.stores.claims).filter(
      ({ metadata }) => !keep.has(metadata.name) && !metadata.deletionTimestamp,
    );
    const due: DomainClaim[] = [];
    let retryAfterMs: number | undefined;
    for (const claim of unwanted) {
      const aheadMs = keptAheadMs(claim, project, this.#deps.clock.now());
      if (aheadMs > 0) {
        retryAfterMs = soonest(retryAfterMs, aheadMs);
      } else if (handover && claim.spec.kind !== "custom") {
        retryAfterMs = soonest(retryAfterMs, RELEASE_RETRY_MS);
      } else {
        due.push(claim);
      }
    }
    const left = await this.#releaseUnrouted(project, due, signal);
    await this.#deleteCertificates(project, claimed, signal);
    // The claim of an expired domain goes once the status tells so.
    const telling = claimed.customs.some((host) => host.is === "expired" && host.kept);
    return {
      left: left + unwanted.length - due.length,
      retryAfterMs: soonest(retryAfterMs, left > 0 || telling ? RELEASE_RETRY_MS : undefined),
    };
  }

  /** Gives back every hostname of a project that is being deleted and has no route any more. */
  async releaseAll(project: Project, signal: AbortSignal): Promise<Release> {
    let left = 0;
    for (const { metadata } of claimsOf(project, this.#deps.stores.claims)) {
      left += (await deleteClaim(metadata, this.#deps.client, signal)) ? 0 : 1;
    }
    this.#deps.routeCheck.forget(project.metadata.uid ?? "");
    return { left, retryAfterMs: left > 0 ? RELEASE_RETRY_MS : undefined };
  }

  /** Writes what was found into conditions and status, `DomainReady` apart. */
  tell(
    project: Project,
    claimed: Claimed,
    routes: Routes,
    release: Release,
    { conditions, status }: { conditions: ConditionSet; status: ProjectStatus },
  ): void {
    const { host, wanted = "", customs: hosts, organization } = claimed;
    const target = host ?? wanted;
    const issues = this.#deps.platform.ingress.certificateIssuer !== undefined;
    const found = { hosts, routes: routes.customs, organization, target, issues };
    status.customDomains = hosts.length > 0 ? customDomainStatuses(found) : undefined;
    tellCustomDomains(found, conditions);
    status.exposure = exposureAfter(project, this.#exposureStand(project, claimed, routes, release));
  }

  get #zone(): string {
    return this.#deps.platform.domainZone;
  }

  /** @returns why the hostname cannot be had */
  async #claimDefault(
    project: Project,
    hostname: string,
    organization: string,
    signal: AbortSignal,
  ): Promise<Finding | undefined> {
    const { platform, stores, client } = this.#deps;
    const chosen = project.spec.subdomain !== undefined;
    const reserved = { zone: platform.domainZone, reserved: platform.reservedHostnames };
    if (chosen && isReservedHostname(hostname, reserved)) {
      return { reason: "DomainReserved", message: `The domain ${hostname} is reserved by the platform.` };
    }
    const claim = { hostname, organization, kind: chosen ? ("subdomain" as const) : ("default" as const) };
    const held = await claimHostname(project, claim, { client, claims: stores.claims }, signal);
    return held
      ? undefined
      : { reason: "DomainTaken", message: `The domain ${hostname} belongs to another project.` };
  }

  /** The default domain that the project still holds, though it asks for another. */
  #formerHost(project: Project): string | undefined {
    const claim = this.#ownClaim(project, project.status?.domain ?? "");
    return claim && claim.spec.kind !== "custom" ? claim.spec.hostname : undefined;
  }

  async #claimCustom(
    project: Project,
    hostname: string,
    organization: string,
    signal: AbortSignal,
  ): Promise<CustomHost> {
    const { client, clock, platform, stores } = this.#deps;
    const why = refusalOf(hostname, platform);
    if (why) {
      return { hostname, is: "refused", why };
    }
    const stand = standOf(hostname, project, this.#ownClaim(project, hostname), clock.now());
    if (stand) {
      return stand;
    }
    const claim = { hostname, organization, kind: "custom" as const };
    const held = await claimHostname(project, claim, { client, claims: stores.claims }, signal);
    if (!held) {
      return { hostname, is: "refused", why: takenBy(hostname) };
    }
    const message = "Ownership has not been looked up yet.";
    return { hostname, is: "unverified", why: { reason: "DomainUnverified", message } };
  }

  #ownClaim(project: Project, hostname: string): DomainClaim | undefined {
    const claim = this.#deps.stores.claims.get(undefined, hostname);
    return claim && !claim.metadata.deletionTimestamp && holds(project, claim) ? claim : undefined;
  }

  async #checkDefault(
    project: Project,
    host: string,
    written: boolean,
    rollout: Rollout,
  ): Promise<MissingRoute | undefined> {
    const paused = project.spec.paused === true;
    const conditions = project.status?.conditions;
    const isTrue = (type: string) => findCondition(conditions, type)?.status === "True";
    const known = !written && isTrue("DomainReady") && project.status?.domain === host;
    if (known && (isTrue("Ready") || !rollout.complete || paused)) {
      return undefined;
    }
    return this.#ask(project, host, rollout);
  }

  async #checkCustom(
    project: Project,
    host: string,
    written: boolean,
    rollout: Rollout,
  ): Promise<MissingRoute | undefined> {
    const told = project.status?.customDomains?.find(({ hostname }) => hostname === host);
    return !written && told?.status === "active" ? undefined : this.#ask(project, host, rollout);
  }

  async #ask(project: Project, host: string, rollout: Rollout): Promise<MissingRoute | undefined> {
    if (rollout.serving === 0 || project.spec.paused) {
      return { reason: "DomainPending", message: "The route waits for an instance." };
    }
    return this.#deps.routeCheck.check(project.metadata.uid ?? "", host);
  }

  #isCertified({ metadata: { namespace, name } }: Project, host: string): boolean {
    const secret = this.#deps.stores.secrets.get(namespace, tlsSecretName(name, host));
    return secret !== undefined && !secret.metadata?.deletionTimestamp;
  }

  /** For a few seconds after the default domain stopped to be as asked. */
  #inHandover({ status }: Project): boolean {
    const ready = findCondition(status?.conditions, "DomainReady");
    const since = Date.parse(ready?.lastTransitionTime ?? "");
    return ready?.status === "True" || this.#deps.clock.now().getTime() - since < HANDOVER_MS;
  }

  /** Deletes claims from which, looked at live, no route leads. Returns how many are left. */
  async #releaseUnrouted(
    project: Project,
    due: readonly DomainClaim[],
    signal: AbortSignal,
  ): Promise<number> {
    if (due.length === 0) {
      return 0;
    }
    const { client } = this.#deps;
    const { namespace, name } = project.metadata;
    const labelSelector = `${labels.project}=${name}`;
    const live = await client.listAll<Ingress>(resources.ingresses, { namespace, labelSelector, signal });
    const routed = new Set(live.flatMap(hostsOf));
    let left = 0;
    for (const { metadata } of due) {
      const gone = !routed.has(metadata.name) && (await deleteClaim(metadata, client, signal));
      left += gone ? 0 : 1;
    }
    return left;
  }

  /** Certificates of domains that the project does not have any more; cert-manager leaves them behind. */
  async #deleteCertificates(project: Project, { customs }: Claimed, signal: AbortSignal): Promise<void> {
    const { namespace, name: id } = project.metadata;
    const wanted = new Set(customs.map(({ hostname }) => tlsSecretName(id, hostname)));
    for (const { metadata = {} } of this.#deps.stores.secrets.byIndex(labels.project, id)) {
      const { name = "", uid } = metadata;
      const stale = metadata.namespace === namespace && isTlsSecret(id, name) && !wanted.has(name);
      if (stale && !metadata.deletionTimestamp) {
        await this.#deps.client.delete(resources.secrets, { name, namespace }, { uid, signal });
      }
    }
  }

  #exposureStand(
    project: Project,
    { host, refused }: Claimed,
    { missing }: Routes,
    { left }: Release,
  ): ExposureStand {
    if (project.spec.exposure === "private") {
      const ingresses = childrenOf(this.#deps.stores, resources.ingresses, project);
      return left === 0 && ingresses.length === 0 ? "done" : "moving";
    }
    if (refused && host === undefined) {
      return "refused";
    }
    // A route without an instance behind it is in place; it is not asked again by itself.
    return missing?.retryAfterMs === undefined ? "done" : "moving";
  }
}

/** What an Ingress leads from; of the platform's own, a rule always has a host. */
function hostsOf({ spec }: Ingress): string[] {
  return (spec?.rules ?? []).flatMap(({ host }) => (host === undefined ? [] : [host]));
}

function isOwn(object: KubernetesObject, project: Project): boolean {
  return controllerOf(object)?.uid === project.metadata.uid;
}

/** What may be routed. */
export function routedHosts({ host, customs }: Claimed): RoutedHosts {
  return { host, customHosts: customs.filter(({ is }) => is === "verified").map(({ hostname }) => hostname) };
}

/** The smallest of some pauses; undefined when there is none. */
export function soonest(...pauses: readonly (number | undefined)[]): number | undefined {
  const known = pauses.filter((pause) => pause !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
}
