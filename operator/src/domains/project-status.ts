/** The state of each custom domain of a project, in its status and its condition `CustomDomainsReady`. Pure. */

import { type ConditionSet, findCondition, timestamp } from "@slipway/controller-runtime";
import {
  type CustomDomainStatus,
  customDomainRecords,
  type DomainClaim,
  isInZone,
  isReservedHostname,
  type Project,
  type ProjectConditionCatalog,
} from "@slipway/crds";
import type { Finding } from "../projects/status.ts";

/** One custom domain, before its route is checked. */
export type CustomHost = { hostname: string } & (
  | { is: "verified" }
  | { is: "unverified"; why: Finding }
  /** Not available, now or ever. */
  | { is: "refused"; why: Finding }
  /** Not proved in time. `kept`: the claim still exists, until the status reports that it has expired. */
  | { is: "expired"; at: string; kept: boolean }
);

/** What was found out about a verified domain. */
export interface CustomRoute {
  /** Why its route is not in place. */
  missing?: Finding;
  /** Its certificate exists. */
  certified: boolean;
}

/** A custom domain that nobody may have. */
export function refusalOf(
  hostname: string,
  {
    domainZone: zone,
    reservedHostnames: reserved,
  }: { domainZone: string; reservedHostnames: readonly string[] },
): Finding | undefined {
  if (isInZone(hostname, zone)) {
    return { reason: "DomainReserved", message: `${hostname} lies in the platform's own zone.` };
  }
  if (isReservedHostname(hostname, { zone, reserved })) {
    return { reason: "DomainReserved", message: `${hostname} is reserved by the platform.` };
  }
  return undefined;
}

/** A domain that another project holds. */
export function claimedByAnother(hostname: string): Finding {
  return { reason: "DomainTaken", message: `${hostname} belongs to another project.` };
}

/**
 * The state of a domain that the project has claimed, or whose claim has expired.
 * @param claim the project's own; absent when there is none
 * @returns undefined when there is no claim and none has expired: it has to be created
 */
export function claimedDomainState(
  hostname: string,
  project: Project,
  claim: DomainClaim | undefined,
  now: Date,
): CustomHost | undefined {
  const at = project.status?.customDomains?.find((domain) => domain.hostname === hostname)?.expiredAt;
  if (!claim) {
    return at === undefined ? undefined : { hostname, is: "expired", at, kept: false };
  }
  const verified = findCondition(claim.status?.conditions, "Verified");
  if (verified?.status === "True") {
    return { hostname, is: "verified" };
  }
  if (verified?.reason === "Expired" || verified?.reason === "ProvedByAnother") {
    return { hostname, is: "expired", at: at ?? timestamp(now), kept: at === undefined };
  }
  return verified
    ? { hostname, is: "unverified", why: { reason: "DomainUnverified", message: verified.message } }
    : pendingLookup(hostname);
}

/** A domain whose ownership has not been looked up yet. */
export function pendingLookup(hostname: string): CustomHost {
  const message = "Ownership has not been looked up yet.";
  return { hostname, is: "unverified", why: { reason: "DomainUnverified", message } };
}

const EXPIRED: Finding = {
  reason: "DomainExpired",
  message:
    "The domain expired: its ownership was not proved within seven days, or another organization has proved that it is its own. Prove it, then remove it and add it again.",
};

/** Why a domain is not ready; undefined when traffic arrives, encrypted where this platform issues certificates. */
function obstacleOf(host: CustomHost, route: CustomRoute | undefined, issues: boolean): Finding | undefined {
  switch (host.is) {
    case "refused":
    case "unverified":
      return host.why;
    case "expired":
      return EXPIRED;
    case "verified":
      if (!route) {
        return { reason: "DomainPending", message: "The route is not in place yet." };
      }
      if (route.missing) {
        const { reason, message } = route.missing;
        return { reason, message };
      }
      return issues && !route.certified
        ? { reason: "CertificatePending", message: "The certificate is not issued yet." }
        : undefined;
  }
}

function sslStatusOf(
  host: CustomHost,
  route: CustomRoute | undefined,
  issues: boolean,
): CustomDomainStatus["sslStatus"] {
  if (!issues) {
    return "disabled";
  }
  switch (host.is) {
    case "refused":
    case "expired":
      return "failed";
    case "unverified":
      return "pending_validation";
    case "verified":
      return route?.certified ? "active" : "pending_issuance";
  }
}

/** What the status of custom domains is derived from. */
export interface CustomDomainsFound {
  hosts: readonly CustomHost[];
  /** Of the verified ones. */
  routes: ReadonlyMap<string, CustomRoute>;
  organization: string;
  /** The default domain, to which the records of custom ones point. */
  target: string;
  /** Whether this platform issues certificates. */
  issues: boolean;
}

/** The entries of the status, in the order of the spec. */
export function customDomainStatuses(found: CustomDomainsFound): CustomDomainStatus[] {
  const { hosts, routes, organization, target, issues } = found;
  return hosts.map((host) => {
    const { hostname } = host;
    const route = routes.get(hostname);
    const active = host.is === "verified" && route !== undefined && !route.missing;
    const failed = host.is === "refused" || host.is === "expired";
    const message = obstacleOf(host, route, issues)?.message;
    return {
      hostname,
      status: active ? "active" : failed ? "failed" : "pending",
      sslStatus: sslStatusOf(host, route, issues),
      dnsRecords: host.is === "refused" ? [] : customDomainRecords({ hostname, organization, target }),
      ...(message === undefined ? {} : { message }),
      ...(host.is === "expired" ? { expiredAt: host.at } : {}),
    };
  });
}

/** `CustomDomainsReady` repeats the first obstacle; it is absent without custom domains. */
export function setCustomDomainsReady(
  { hosts, routes, issues }: CustomDomainsFound,
  conditions: ConditionSet<ProjectConditionCatalog>,
): void {
  const type = "CustomDomainsReady";
  if (hosts.length === 0) {
    conditions.remove(type);
    return;
  }
  const obstacles = hosts.flatMap((host) => {
    const obstacle = obstacleOf(host, routes.get(host.hostname), issues);
    return obstacle ? [{ ...obstacle, hostname: host.hostname }] : [];
  });
  const [first] = obstacles;
  if (!first) {
    conditions.set({ type, status: "True", reason: "DomainAssigned" });
    return;
  }
  const others = obstacles.length > 1 ? ` (${obstacles.length - 1} more are not ready.)` : "";
  const message = `${first.hostname}: ${first.message}${others}`;
  conditions.set({ type, status: "False", reason: first.reason, message });
}
