import ipaddr from "ipaddr.js";

/** Maximum characters of a proxy's value in place of an address. */
const LONGEST = 64;

/**
 * What counts as one client: an IPv4 address, or the /64 of an IPv6 one, since a single host may have as many of these as it likes.
 * @param address as `request.ip` gives it; what is no address stays as it is
 */
export function addressGroup(address: string): string {
  if (!address.includes(":") || !ipaddr.isValid(address)) {
    return address.slice(0, LONGEST);
  }
  // An IPv4 address that is mapped into IPv6 comes back as IPv4.
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4") {
    return parsed.toString();
  }
  const network = (parsed as ipaddr.IPv6).parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}
