import { isIP, isIPv6, type LookupFunction } from "node:net";
import { isPublicAddress, queriedAddresses, type Resolve, ssrfSafeLookup, systemResolve } from "@slipway/git";
import { DeliveryError } from "./receiver.ts";

export interface AddressOptions {
  /** `host:port` of receivers whose addresses may be private. */
  allowedHosts: ReadonlySet<string>;
  /** Addresses that are refused although they are public, such as the cluster's own. */
  isRefused?: (address: string) => boolean;
  /** In place of queries to the name servers. */
  resolve?: Resolve;
}

/**
 * The lookup of connections to a host, and what to give it: all addresses of the host, once every one of them was found to be public. A
 * connection that is kept is not looked up again.
 * @throws DeliveryError AddressRefused of a host that is such an address itself, which is not looked up
 */
export function receiverAddress(
  host: string,
  port: number,
  { allowedHosts, isRefused = () => false, resolve }: AddressOptions,
): { host: string; port: number; lookup: LookupFunction } {
  const literal = host.replace(/^\[|\]$/g, "");
  // As URLs have it: in lower case, and an IPv6 address in its shortest form.
  const name = isIPv6(literal)
    ? (URL.parse(`https://[${literal}]`)?.hostname ?? literal)
    : literal.toLowerCase();
  const isAllowed = allowedHosts.has(`${name}:${port}`);
  const mayConnect = (address: string) => isPublicAddress(address) && !isRefused(address);
  if (isIP(literal) !== 0 && !isAllowed && !mayConnect(literal)) {
    throw addressRefused();
  }
  // The installation names those that are allowed, by search domains perhaps. Any other is a tenant's, and may have a name server that does not
  // answer: no thread waits for it.
  const lookup = isAllowed
    ? ssrfSafeLookup(resolve ?? systemResolve, () => true)
    : ssrfSafeLookup(resolve ?? queriedAddresses, mayConnect);
  return { host: literal, port, lookup };
}

/** The failure of a host with an address that is not public. */
export const addressRefused = (cause?: unknown): DeliveryError =>
  new DeliveryError("AddressRefused", "the receiver's address is not a public one", { cause });
