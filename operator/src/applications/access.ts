/** The addresses from which a public project may be reached. Pure. */

import { isEverybody, isOpenAccess, type ProjectSpec } from "@slipway/crds";
import { parseCidr, subtractCidrs } from "../net/cidr.ts";

/** How the ingress controller in use enforces access lists; `none`: it does not. */
export const ALLOW_LISTS = ["traefik", "nginx", "none"] as const;
export type AllowList = (typeof ALLOW_LISTS)[number];

/** No request ever comes from the broadcast address. Controllers treat an empty list as no list, or refuse it. */
const NOBODY = "255.255.255.255/32";

/** IPv4-mapped IPv6 addresses, which Go, and so the ingress controllers, read as IPv4. */
const MAPPED = parseCidr("::ffff:0:0/96");

/**
 * The ranges that an ingress has to admit: those of the white list without those of the black list, as the fewest CIDRs
 * of both families, never an empty list. Undefined when everybody is admitted.
 */
export function admittedCidrs(access: ProjectSpec["networkAccess"]): string[] | undefined {
  if (access === undefined || isOpenAccess(access)) {
    return undefined;
  }
  const white = withBothFamilies(access.ingressWhiteList);
  const black = withBothFamilies(access.ingressBlackList ?? []);
  const left = subtractCidrs(white, black).filter((cidr) => !isMapped(cidr));
  return left.length > 0 ? left : [NOBODY];
}

/** `0.0.0.0/0` means everybody, in both families. */
function withBothFamilies(list: readonly { cidr: string }[]): string[] {
  return list.flatMap(({ cidr }) => (isEverybody(cidr) ? [cidr, "::/0"] : [cidr]));
}

/** No client has such an address, and written into a list it would admit an IPv4 range that nobody named. */
function isMapped(cidr: string): boolean {
  const { family, first, last } = parseCidr(cidr);
  return family === 6 && first >= MAPPED.first && last <= MAPPED.last;
}
