/** Which part of the outside world a tenant's pods may reach, as `ipBlock` peers. Pure. */

import { BlockList, isIP, isIPv6 } from "node:net";

/** Never reachable from a tenant, whatever the configuration says: cloud metadata, private and link-local IPv6. */
const ALWAYS_DENIED = ["169.254.0.0/16", "fc00::/7", "fe80::/10"];

/** One `ipBlock` of a NetworkPolicy peer. */
export interface IpBlock {
  cidr: string;
  except?: string[];
}

/**
 * Splits `10.0.0.0/8` into address and prefix length.
 * @throws when the text is no CIDR; the message names it.
 */
export function parseCidr(text: string): { address: string; prefix: number; family: "ipv4" | "ipv6" } {
  const [address = "", length = ""] = text.split("/");
  const version = isIP(address);
  const prefix = /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (version === 0 || !(prefix >= 0 && prefix <= (version === 4 ? 32 : 128))) {
    throw new Error(`"${text}" is not a CIDR, such as 10.244.0.0/16`);
  }
  return { address, prefix, family: version === 4 ? "ipv4" : "ipv6" };
}

/**
 * Everything but the denied ranges, one block per address family. A family whose every address is denied has no block;
 * Kubernetes wants each exception strictly inside its block and a stable order keeps the object unchanged.
 */
export function outsideWorld(denied: readonly string[]): IpBlock[] {
  const all = [...new Set([...denied, ...ALWAYS_DENIED])];
  return [
    { cidr: "0.0.0.0/0", ranges: all.filter((cidr) => !isIPv6(parseCidr(cidr).address)) },
    { cidr: "::/0", ranges: all.filter((cidr) => isIPv6(parseCidr(cidr).address)) },
  ]
    .filter(({ ranges }) => !ranges.some((cidr) => parseCidr(cidr).prefix === 0))
    .map(({ cidr, ranges }) => ({ cidr, except: withoutContained(ranges).sort() }));
}

/** Drops ranges that lie inside another one of the list. */
function withoutContained(cidrs: readonly string[]): string[] {
  return cidrs.filter((inner) => {
    const { address, prefix, family } = parseCidr(inner);
    return !cidrs.some((outer) => {
      const range = parseCidr(outer);
      if (outer === inner || range.family !== family || range.prefix >= prefix) {
        return false;
      }
      const list = new BlockList();
      list.addSubnet(range.address, range.prefix, range.family);
      return list.check(address, family);
    });
  });
}
