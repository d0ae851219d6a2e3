/** Arithmetic on CIDRs of both families. Pure. */

import { isIP } from "node:net";

/** A parsed CIDR: its first and last address as numbers. */
export interface AddressRange {
  family: 4 | 6;
  first: bigint;
  last: bigint;
}

const BITS = { 4: 32, 6: 128 } as const;

/**
 * Reads `10.0.0.0/8`; host bits are ignored.
 * @throws when the text is no CIDR; the message names it.
 */
export function parseCidr(text: string): AddressRange & { prefix: number } {
  const [address = "", length = "", ...rest] = text.split("/");
  const family = isIP(address) as 0 | 4 | 6;
  const prefix = /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (family === 0 || rest.length > 0 || address.includes("%") || !(prefix >= 0 && prefix <= BITS[family])) {
    throw new Error(`"${text}" is not a CIDR, such as 10.244.0.0/16`);
  }
  const size = 1n << BigInt(BITS[family] - prefix);
  const number = family === 4 ? ipv4Number(address) : ipv6Number(address);
  const first = number - (number % size);
  return { family, first, last: first + size - 1n, prefix };
}

/** The addresses that are in an allowed range and in no denied one, as the fewest CIDRs, in order. */
export function subtractCidrs(allowed: readonly string[], denied: readonly string[]): string[] {
  const holes = denied.map(parseCidr);
  return ([4, 6] as const).flatMap((family) => {
    const ranges = merge(allowed.map(parseCidr).filter((range) => range.family === family));
    const left = holes
      .filter((hole) => hole.family === family)
      .reduce<AddressRange[]>((rest, hole) => rest.flatMap((range) => cut(range, hole)), ranges);
    return left.flatMap(toCidrs);
  });
}

function merge(ranges: readonly AddressRange[]): AddressRange[] {
  const merged: AddressRange[] = [];
  for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const previous = merged.at(-1);
    if (previous && range.first <= previous.last + 1n) {
      merged[merged.length - 1] = {
        ...previous,
        last: larger(range.last, previous.last),
      };
    } else {
      merged.push(range);
    }
  }
  return merged;
}

function larger(a: bigint, b: bigint): bigint {
  return a < b ? b : a;
}

function cut(range: AddressRange, hole: AddressRange): AddressRange[] {
  if (hole.last < range.first || range.last < hole.first) {
    return [range];
  }
  return [
    ...(hole.first > range.first ? [{ ...range, last: hole.first - 1n }] : []),
    ...(hole.last < range.last ? [{ ...range, first: hole.last + 1n }] : []),
  ];
}

function toCidrs({ family, first, last }: AddressRange): string[] {
  const cidrs: string[] = [];
  for (let start = first; start <= last; ) {
    // The largest aligned block that starts here and does not reach past the end.
    let host = 0;
    while (host < BITS[family]) {
      const size = 1n << BigInt(host + 1);
      if (start % size !== 0n || start + size - 1n > last) {
        break;
      }
      host += 1;
    }
    cidrs.push(`${family === 4 ? ipv4Text(start) : ipv6Text(start)}/${BITS[family] - host}`);
    start += 1n << BigInt(host);
  }
  return cidrs;
}

function ipv4Number(address: string): bigint {
  return address.split(".").reduce((number, part) => number * 256n + BigInt(part), 0n);
}

function ipv4Text(number: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 255n).join(".");
}

function ipv6Number(address: string): bigint {
  // An address such as ::ffff:10.0.0.1 ends in an IPv4 one: two groups.
  const text = address.replace(/\d+\.\d+\.\d+\.\d+$/, (v4) => {
    const number = ipv4Number(v4);
    return `${(number >> 16n).toString(16)}:${(number & 0xffffn).toString(16)}`;
  });
  const [head = "", tail] = text.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const missing = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array<string>(missing).fill("0"), ...groups(tail ?? "")];
  return all.reduce((number, group) => number * 65_536n + BigInt(`0x${group}`), 0n);
}

function ipv6Text(number: bigint): string {
  const groups = Array.from({ length: 8 }, (_, i) =>
    ((number >> BigInt(112 - 16 * i)) & 0xffffn).toString(16),
  );
  // The URL parser writes the canonical short form.
  return new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1);
}
