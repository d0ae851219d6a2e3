import { findHttpPlan, isInZone, isReservedHostname, type Project, type ProjectSpec } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";
import type { Services } from "../services.ts";

/** Computes the specs that operations on domains write for HTTP projects, and their refusals. Pure. */

type Live = Pick<Project, "status" | "metadata">;

/** Domains that one call may add. */
const NEW_DOMAINS = 1;

/** @throws Failure 403 when the plan has no custom subdomain, 409 when private or reserved */
export function withSubdomain(
  spec: ProjectSpec,
  subdomain: string,
  { catalog, ...platform }: DomainPlatform & Pick<Services, "catalog">,
): ProjectSpec {
  if (!findHttpPlan(catalog.current, spec.plan)?.capabilities.custom_subdomain) {
    throw failures.customSubdomainNotAvailable(spec.plan);
  }
  if (spec.exposure !== "public") {
    throw failures.projectPrivate();
  }
  if (spec.subdomain === subdomain) {
    return spec;
  }
  refuseReservedSubdomain(subdomain, platform);
  return { ...spec, subdomain };
}

/** @throws Failure 400 for reserved domains and more than one new one, 409 when private */
export function withCustomDomains(
  spec: ProjectSpec,
  customDomains: string[],
  platform: DomainPlatform,
): ProjectSpec {
  const present = spec.customDomains ?? [];
  const added = customDomains.filter((hostname) => !present.includes(hostname));
  const errors = reservedDomainErrors(customDomains, platform, "custom_domains");
  if (added.length > NEW_DOMAINS) {
    const message = `adds ${added.length} domains: add one per call`;
    errors.push({ field: "custom_domains", message, code: "TOO_MANY_NEW_DOMAINS" });
  }
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  if (spec.exposure !== "public") {
    throw failures.projectPrivate();
  }
  return { ...spec, customDomains: [...customDomains] };
}

/** @throws Failure 409 while another change of exposure runs */
export function withExposure(spec: ProjectSpec, exposure: "public" | "private", live: Live): ProjectSpec {
  if (spec.exposure === exposure) {
    return spec;
  }
  if (isExposureChanging(spec, live)) {
    throw failures.exposureChangeInProgress();
  }
  if (exposure === "public") {
    return { ...spec, exposure };
  }
  const { subdomain: _, customDomains: __, ...rest } = spec;
  return { ...rest, exposure };
}

/** A change that cannot be carried out has ended, too: then the status is about this spec, and does not change. */
export function isExposureChanging(spec: ProjectSpec, { status, metadata }: Live): boolean {
  const known = status?.exposure;
  if (known === undefined) {
    return false;
  }
  const isSeen = (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  return known.changing === true || (known.current !== spec.exposure && !isSeen);
}

/** What the platform keeps for itself. */
export type DomainPlatform = Pick<Services, "domainZone" | "reservedHostnames">;

/** A reserved subdomain is refused like one that is claimed. @throws Failure 409 */
export function refuseReservedSubdomain(
  subdomain: string,
  { domainZone: zone, reservedHostnames: reserved }: DomainPlatform,
): void {
  const hostname = `${subdomain}.${zone}`;
  if (isReservedHostname(hostname, { zone, reserved })) {
    throw failures.domainUnavailable(hostname);
  }
}

/**
 * Custom domains that are the platform's own, or are in its zone. Pure.
 * @param field the list's name in the body
 */
export function reservedDomainErrors(
  hostnames: readonly string[],
  { domainZone: zone, reservedHostnames: reserved }: DomainPlatform,
  field: string,
): FieldError[] {
  return hostnames.flatMap((hostname, index) =>
    isInZone(hostname, zone) || isReservedHostname(hostname, { zone, reserved })
      ? [{ field: `${field}[${index}]`, message: `${hostname} is reserved`, code: "DOMAIN_RESERVED" }]
      : [],
  );
}
