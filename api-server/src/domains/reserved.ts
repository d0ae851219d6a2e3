import { isInZone, isReservedHostname } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";
import type { Services } from "../services.ts";

/** What the platform keeps for itself. */
export type DomainPlatform = Pick<Services, "domainZone" | "reservedHostnames">;

/** A reserved subdomain looks like a taken one. @throws Failure 409 */
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
 * Custom domains that are the platform's own, or lie in its zone. Pure.
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
