import { createHash } from "node:crypto";

/** What a user's own domain needs before it leads to a project. Pure. */

/** A record to create at the DNS provider. */
export interface DnsRecord {
  type: "TXT" | "CNAME" | "A" | "AAAA";
  name: string;
  value: string;
}

/** Milliseconds for which a domain whose ownership is not proved stays reserved. */
export const UNPROVED_DOMAIN_MS = 7 * 24 * 3600 * 1000;

/** How long the record that proved a domain may be missing until that is reported, in milliseconds. */
export const PROOF_MISSING_MS = 7 * 24 * 3600 * 1000;

/** Where the proof of ownership is queried. */
export function challengeName(hostname: string): string {
  return `_slipway-challenge.${hostname}`;
}

/** What the TXT record must hold: it says which organization the owner of the domain lets use it. */
export function challengeValue(organization: string, hostname: string): string {
  const digest = createHash("sha256").update(`${organization}/${hostname}`).digest("hex");
  return `slipway-verification=${digest.slice(0, 32)}`;
}

/**
 * The records of a custom domain: the proof, and the way to the platform.
 * @param target the project's default domain, to which the hostname is to lead
 */
export function customDomainRecords(domain: {
  hostname: string;
  organization: string;
  target: string;
}): DnsRecord[] {
  const { hostname, organization, target } = domain;
  return [
    { type: "TXT", name: challengeName(hostname), value: challengeValue(organization, hostname) },
    { type: "CNAME", name: hostname, value: target },
  ];
}

/**
 * Whether a hostname is the platform's own. In the zone: the zone itself and the reserved names, everything else there
 * is a default domain. Outside of it: the reserved names and what lies below them.
 * @param reserved full hostnames, or single labels, each for `<label>.<zone>`
 */
export function isReservedHostname(
  hostname: string,
  { zone, reserved }: { zone: string; reserved: readonly string[] },
): boolean {
  const names = reserved.map((name) => (name.includes(".") ? name : `${name}.${zone}`));
  return hostname === zone || names.some((name) => hostname === name || hostname.endsWith(`.${name}`));
}

/** Whether a hostname lies in the platform's zone: no custom domain may. */
export function isInZone(hostname: string, zone: string): boolean {
  return hostname === zone || hostname.endsWith(`.${zone}`);
}
