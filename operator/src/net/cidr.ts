/** Arithmetic on CIDRs of both families. Pure. */

import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

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
  const number = numberOf(address);
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
    cidrs.push(`${addressOf(family, start)}/${BITS[family] - host}`);
    start += 1n << BigInt(host);
  }
  return cidrs;
}

function numberOf(address: string): bigint {
  return ipaddr
    .parse(address)
    .toByteArray()
    .reduce((number, byte) => number * 256n + BigInt(byte), 0n);
}

function addressOf(family: 4 | 6, number: bigint): string {
  const hex = number.toString(16).padStart(BITS[family] / 4, "0");
  return ipaddr.fromByteArray([...Buffer.from(hex, "hex")]).toString();
}
