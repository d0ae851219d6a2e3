import { isIP, SocketAddress } from "node:net";

/**
 * The one text of an IP address: IPv6 in its shortest form, IPv4 that comes as IPv6 as IPv4, without a zone. Undefined for what is
 * no address. Events and filters have addresses as this gives them.
 */
export function canonicalAddress(text: string): string | undefined {
  const version = isIP(text);
  if (version === 4) {
    return text;
  }
  if (version !== 6) {
    return undefined;
  }
  const address = text.replace(/%.*$/, "");
  const short = new SocketAddress({ address, family: "ipv6" }).address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(short);
  return mapped?.[1] ?? short;
}
