/** Which part of the outside world a tenant's pods may reach, as `ipBlock` peers. Pure. */

import { subtractCidrs } from "../net/cidr.ts";

/** Never reachable from a tenant, whatever the configuration says: cloud metadata, private and link-local IPv6. */
const ALWAYS_DENIED = ["169.254.0.0/16", "fc00::/7", "fe80::/10"];

/** One `ipBlock` of a NetworkPolicy peer. */
export interface IpBlock {
  cidr: string;
  except?: string[];
}

/**
 * Everything but the denied ranges, one block per address family. A family whose every address is denied has no block:
 * Kubernetes wants each exception strictly inside its block. Merged and ordered, so that the object stays unchanged.
 */
export function outsideWorld(denied: readonly string[]): IpBlock[] {
  const except = subtractCidrs([...denied, ...ALWAYS_DENIED], []);
  return ["0.0.0.0/0", "::/0"]
    .filter((everything) => !except.includes(everything))
    .map((cidr) => ({ cidr, except: except.filter((range) => range.includes(":") === cidr.includes(":")) }));
}
