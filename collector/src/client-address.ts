import { BlockList, isIP } from "node:net";
import { canonicalAddress } from "@slipway/analytics";

/** In place of an address that is missing. */
export const UNKNOWN_ADDRESS = "::";

/** Whether an address is one of the proxies that are trusted. */
export type TrustedProxies = (address: string) => boolean;

/**
 * Trust in addresses and CIDRs.
 * @throws Error for one that is neither
 */
export function trustedProxies(ranges: readonly string[]): TrustedProxies {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", prefix] = range.split("/");
    const version = isIP(address);
    if (version === 0) {
      throw new Error(`neither an address nor a CIDR: ${range}`);
    }
    list.addSubnet(address, Number(prefix ?? (version === 4 ? 32 : 128)), version === 4 ? "ipv4" : "ipv6");
  }
  return (address) => list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/**
 * The client of a request, as an IPv4 or IPv6 address: the last one of the chain that is no trusted proxy. What is before
 * that one may be anybody's invention.
 * @param peer who connected, as `address` or `address:port`
 * @param forwardedFor content of X-Forwarded-For, as it arrived with the request
 */
export function clientAddress(peer: string, forwardedFor: string, isTrusted: TrustedProxies): string {
  let client = addressOf(peer);
  // Only the end of a header of a megabyte matters.
  const chain = forwardedFor === "" ? [] : forwardedFor.slice(-4096).split(",");
  while (chain.length > 0 && (client === undefined || isTrusted(client))) {
    const before = addressOf(chain.pop() ?? "");
    if (before === undefined) {
      break;
    }
    client = before;
  }
  return client ?? UNKNOWN_ADDRESS;
}

/** An address out of `address`, `address:port`, `[address]` or `[address]:port`; IPv4 in IPv6 as IPv4. */
export function addressOf(text: string): string | undefined {
  const trimmed = text.trim();
  const inBrackets = /^\[([^\]]+)\](?::\d+)?$/.exec(trimmed)?.[1];
  const withPort = /^([^:]+):\d+$/.exec(trimmed)?.[1];
  return canonicalAddress(inBrackets ?? withPort ?? trimmed);
}
