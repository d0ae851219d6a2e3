/** Claims the hostnames that a project requests. */

import type { KubeClient } from "@slipway/controller-runtime";
import { type DomainClaim, isReservedHostname, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { type HttpPlatform, type RoutedHosts, wantedHost } from "../applications/view.ts";
import type { Finding } from "../projects/status.ts";
import type { ProjectStores } from "../projects/stores.ts";
import { claimHostname, isHolder } from "./claims.ts";
import {
  type CustomHost,
  claimedByAnother,
  claimedDomainState,
  pendingLookup,
  refusalOf,
} from "./project-status.ts";

export interface ClaimingDependencies {
  client: KubeClient;
  clock: Clock;
  stores: Pick<ProjectStores, "claims">;
  platform: Pick<HttpPlatform, "domainZone" | "reservedHostnames">;
}

/** Which of the hostnames that it requests a project has. */
export interface Claimed {
  organization: string;
  /** The default domain that it requests; absent of a private project. */
  wanted?: string;
  /** The default domain that may route to it: the former one, while the requested one is not available. */
  host?: string;
  /** Why the requested default domain is not available. */
  refused?: Finding;
  customs: readonly CustomHost[];
}

/** Claims every hostname that the project requests and may have. */
export async function claimDomains(
  project: Project,
  organization: string,
  deps: ClaimingDependencies,
  signal: AbortSignal,
): Promise<Claimed> {
  const wanted = wantedHost(project, deps.platform.domainZone);
  if (wanted === undefined) {
    return { organization, customs: [] };
  }
  const refused = await claimDefault(project, wanted, organization, deps, signal);
  const customs: CustomHost[] = [];
  for (const hostname of project.spec.customDomains ?? []) {
    customs.push(await claimCustom(project, hostname, organization, deps, signal));
  }
  const host = refused ? formerHost(project, deps) : wanted;
  return { organization, wanted, host, refused, customs };
}

/** What may be routed. */
export function routedHosts({ host, customs }: Claimed): RoutedHosts {
  return { host, customHosts: customs.filter(({ is }) => is === "verified").map(({ hostname }) => hostname) };
}

/** @returns why the hostname is not available */
async function claimDefault(
  project: Project,
  hostname: string,
  organization: string,
  { client, platform, stores }: ClaimingDependencies,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  const chosen = project.spec.subdomain !== undefined;
  const reserved = { zone: platform.domainZone, reserved: platform.reservedHostnames };
  if (chosen && isReservedHostname(hostname, reserved)) {
    return { reason: "DomainReserved", message: `The domain ${hostname} is reserved by the platform.` };
  }
  const claim = { hostname, organization, kind: chosen ? ("subdomain" as const) : ("default" as const) };
  const isClaimed = await claimHostname(project, claim, { client, claims: stores.claims }, signal);
  return isClaimed
    ? undefined
    : { reason: "DomainTaken", message: `The domain ${hostname} belongs to another project.` };
}

/** The default domain that the project still has, though its spec wants another. */
function formerHost(project: Project, deps: ClaimingDependencies): string | undefined {
  const claim = ownClaim(project, project.status?.domain ?? "", deps);
  return claim && claim.spec.kind !== "custom" ? claim.spec.hostname : undefined;
}

async function claimCustom(
  project: Project,
  hostname: string,
  organization: string,
  deps: ClaimingDependencies,
  signal: AbortSignal,
): Promise<CustomHost> {
  const { client, clock, platform, stores } = deps;
  const why = refusalOf(hostname, platform);
  if (why) {
    return { hostname, is: "refused", why };
  }
  const state = claimedDomainState(hostname, project, ownClaim(project, hostname, deps), clock.now());
  if (state) {
    return state;
  }
  const claim = { hostname, organization, kind: "custom" as const };
  const isClaimed = await claimHostname(project, claim, { client, claims: stores.claims }, signal);
  return isClaimed ? pendingLookup(hostname) : { hostname, is: "refused", why: claimedByAnother(hostname) };
}

function ownClaim(
  project: Project,
  hostname: string,
  { stores }: ClaimingDependencies,
): DomainClaim | undefined {
  const claim = stores.claims.get(undefined, hostname);
  return claim && !claim.metadata.deletionTimestamp && isHolder(project, claim) ? claim : undefined;
}
