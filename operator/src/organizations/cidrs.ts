/** The addresses outside the cluster that a tenant's pods may reach, as `ipBlock` peers. Pure. */

import { subtractCidrs } from "../net/cidr.ts";

/** Never reachable from a tenant, in any configuration. */
const ALWAYS_DENIED = [
  // Link-local, with the metadata service of most clouds; shared addresses (RFC 6598), with Alibaba's at 100.100.100.200.
  "169.254.0.0/16",
  "100.64.0.0/10",
  // Azure's agent of its hosts; the protocols' own block, with Oracle's metadata at 192.0.0.192.
  "168.63.129.16/32",
  "192.0.0.0/24",
  // Private, with EC2's metadata at fd00:ec2::254, and link-local.
  "fc00::/7",
  "fe80::/10",
  // Behind a translator these are IPv4 addresses, those that are denied too (RFC 6052, RFC 8215).
  "64:ff9b::/96",
  "64:ff9b:1::/48",
];

/** One `ipBlock` of a NetworkPolicy peer. */
export interface IpBlock {
  cidr: string;
  except?: string[];
}

/** The configured ranges and those that are always denied: merged and ordered. */
export function deniedCidrs(configured: readonly string[]): string[] {
  return subtractCidrs([...configured, ...ALWAYS_DENIED], []);
}

/**
 * Everything but the denied ranges, one block per address family. A family whose every address is denied has no block:
 * Kubernetes wants each exception strictly inside its block. Merged and ordered, so that the object stays unchanged.
 */
export function outsideWorld(denied: readonly string[]): IpBlock[] {
  const except = deniedCidrs(denied);
  return ["0.0.0.0/0", "::/0"]
    .filter((everything) => !except.includes(everything))
    .map((cidr) => ({ cidr, except: except.filter((range) => range.includes(":") === cidr.includes(":")) }));
}
