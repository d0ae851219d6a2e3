/** Whom a database's lists admit, as NetworkPolicies have it. Pure. */

import { isEverybody, type ProjectSpec } from "@slipway/crds";
import { type AddressRange, parseCidr, subtractCidrs } from "../../net/cidr.ts";

/** `ipBlock` of a NetworkPolicy's peer: a range without the ranges in it that are excepted. */
export interface IpBlock {
  cidr: string;
  except?: string[];
}

/**
 * The ranges of the white list, each without what of the black list is in it. Two CIDRs are apart or one is in the other,
 * so nothing else can be. None without a white list: no outside client is admitted then.
 */
export function admittedBlocks(access: ProjectSpec["networkAccess"]): IpBlock[] {
  const black = bothFamilies(access?.ingressBlackList ?? []);
  const white = bothFamilies(access?.ingressWhiteList ?? []);
  return [...new Set(white)].flatMap((cidr) => {
    const range = parseCidr(cidr);
    if (black.some((one) => contains(parseCidr(one), range))) {
      return [];
    }
    const except = [...new Set(black)].filter((one) => contains(range, parseCidr(one)));
    return [{ cidr, ...(except.length > 0 ? { except } : {}) }];
  });
}

/** `0.0.0.0/0` means everybody, whichever family they come by. */
function bothFamilies(list: readonly { cidr: string }[]): string[] {
  return list.flatMap(({ cidr }) => (isEverybody(cidr) ? ["0.0.0.0/0", "::/0"] : [canonical(cidr)]));
}

/** Without host bits, which an apiserver may refuse. */
function canonical(cidr: string): string {
  return subtractCidrs([cidr], [])[0] ?? cidr;
}

function contains(outer: AddressRange, inner: AddressRange): boolean {
  return outer.family === inner.family && outer.first <= inner.first && inner.last <= outer.last;
}
