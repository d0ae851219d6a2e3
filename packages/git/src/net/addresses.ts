/** Addresses of tenants' Git servers: their canonical form, and which of them may be connected to. */

import { BlockList, isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import { GitError } from "../errors.ts";

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

/** Whether an address is in one of these CIDRs, also one that represents an IPv4 address of them. */
export function isInCidrs(cidrs: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", prefix = ""] = cidr.split("/");
    list.addSubnet(network, Number(prefix), familyOf(network));
  }
  return (address) => {
    const plain = plainAddress(address);
    return list.check(plain, familyOf(plain));
  };
}

const familyOf = (address: string): "ipv4" | "ipv6" => (isIPv6(address) ? "ipv6" : "ipv4");

/** The IPv4 address that an IPv6 one represents; of any other address itself. */
function plainAddress(address: string): string {
  return isIPv6(address) && !address.includes("%") && embedding.check(address, "ipv6")
    ? embeddedIPv4(address)
    : address;
}

/** The last 32 bits of an IPv6 address, as an IPv4 one. */
function embeddedIPv4(address: string): string {
  return ipaddr.fromByteArray(ipaddr.parse(address).toByteArray().slice(-4)).toString();
}

/** Longest address, in characters. */
export const INSTANCE_URL_MAX_LENGTH = 512;

const invalid = (why: string) => new GitError("InstanceUrlInvalid", `the instance's address ${why}`);

/**
 * The canonical form: `https://host[:port][/path]`, without a slash at the end. A server may live below a path.
 * @throws GitError InstanceUrlInvalid that says what is wrong
 */
export function canonicalInstanceUrl(text: string): string {
  if (text.length > INSTANCE_URL_MAX_LENGTH) {
    throw invalid(`is longer than ${INSTANCE_URL_MAX_LENGTH} characters`);
  }
  // The parser drops and turns these silently; a person who wrote them means something else.
  if (/[\s\p{Cc}\\]/u.test(text)) {
    throw invalid("holds spaces, backslashes or control characters");
  }
  const url = URL.parse(text);
  if (url === null) {
    throw invalid("is no URL");
  }
  if (url.protocol !== "https:") {
    throw invalid("must begin with https://");
  }
  if (!/^https:\/\/[^/]/i.test(text)) {
    throw invalid("must begin with https:// and a host");
  }
  if (url.username !== "" || url.password !== "" || text.includes("@")) {
    throw invalid("must not hold a credential");
  }
  // The parser takes dots out of a path, however they are written.
  if (text.includes("%") || /\/\.{1,2}(\/|$)/.test(text)) {
    throw invalid("has a path of other than plain characters");
  }
  if (text.includes("?") || text.includes("#")) {
    throw invalid("must not have a query or a fragment");
  }
  if (url.hostname === "" || url.hostname.endsWith(".")) {
    throw invalid("has no host name");
  }
  const path = url.pathname.replace(/\/+$/, "");
  if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(path)) {
    throw invalid("has a path of other than plain characters");
  }
  return `${url.origin}${path}`;
}

/** `host:port` of an address, as configuration names those that may be private. */
export function hostAndPort(url: URL): string {
  return `${url.hostname}:${url.port === "" ? "443" : url.port}`;
}
