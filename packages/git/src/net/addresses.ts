/** Which addresses a tenant's Git server may have. */

import { BlockList, isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

/** IPv4 ranges that are not the public Internet: IANA's special-purpose registry, multicast, and what is reserved. */
const REFUSED_V4: readonly [string, number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // Link-local, and with it the metadata services of most clouds.
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
  // Wire servers and metadata of clouds that are in public ranges.
  ["168.63.129.16", 32],
  ["100.100.100.200", 32],
];

/** Of IPv6 only global unicast is public; these parts of it are not. */
const REFUSED_V6: readonly [string, number][] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const refused = new BlockList();
for (const [network, prefix] of REFUSED_V4) {
  refused.addSubnet(network, prefix, "ipv4");
}
for (const [network, prefix] of REFUSED_V6) {
  refused.addSubnet(network, prefix, "ipv6");
}
const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");
// Addresses that represent an IPv4 one: mapped, and translated by NAT64, which IPv6-only clusters reach everything by.
const embedding = new BlockList();
embedding.addSubnet("::ffff:0:0", 96, "ipv6");
embedding.addSubnet("64:ff9b::", 96, "ipv6");

/** Whether an address is one of the public Internet. Anything that is no address is not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) {
    return !refused.check(address, "ipv4");
  }
  if (!isIPv6(address) || address.includes("%")) {
    return false;
  }
  if (embedding.check(address, "ipv6")) {
    return isPublicAddress(embeddedIPv4(address));
  }
  return globalUnicast.check(address, "ipv6") && !refused.check(address, "ipv6");
}

/** The last 32 bits of an IPv6 address, as an IPv4 one. */
function embeddedIPv4(address: string): string {
  return ipaddr.fromByteArray(ipaddr.parse(address).toByteArray().slice(-4)).toString();
}
