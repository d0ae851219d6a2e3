/**
 * Recognizes a CIDR as Kubernetes' CEL function `isCIDR` does (Go's netip.ParsePrefix): an IPv4 or IPv6 address, a
 * slash, a prefix length without leading zeros; no zone, no IPv4-mapped IPv6. Host bits may be set.
 */
export function isCidr(text: string): boolean {
  const slash = text.lastIndexOf("/");
  if (slash < 0) {
    return false;
  }
  const address = text.slice(0, slash);
  const length = text.slice(slash + 1);
  if (!/^(0|[1-9][0-9]{0,2})$/.test(length)) {
    return false;
  }
  if (isIpv4(address)) {
    return Number(length) <= 32;
  }
  return isIpv6(address) && Number(length) <= 128;
}

function isIpv4(text: string): boolean {
  const parts = text.split(".");
  return (
    parts.length === 4 && parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255)
  );
}

/** Groups of one side of `::`; an IPv4 tail counts as two. Undefined when malformed. */
function groups(text: string, mayEndInIpv4: boolean): string[] | undefined {
  if (text === "") {
    return [];
  }
  const parts = text.split(":");
  const last = parts.at(-1) ?? "";
  if (last.includes(".")) {
    if (!mayEndInIpv4 || !isIpv4(last)) {
      return undefined;
    }
    const [a = 0, b = 0, c = 0, d = 0] = last.split(".").map(Number);
    parts.splice(-1, 1, (a * 256 + b).toString(16), (c * 256 + d).toString(16));
  }
  return parts.every((part) => /^[0-9A-Fa-f]{1,4}$/.test(part)) ? parts : undefined;
}

function isIpv6(text: string): boolean {
  const halves = text.split("::");
  if (halves.length > 2) {
    return false;
  }
  const [left = "", right] = halves;
  const head = groups(left, right === undefined);
  const tail = right === undefined ? [] : groups(right, true);
  if (head === undefined || tail === undefined) {
    return false;
  }
  const count = head.length + tail.length;
  if (right === undefined ? count !== 8 : count > 7) {
    return false;
  }
  return !isMapped(head, tail);
}

/** `::ffff:a.b.c.d`, which Kubernetes refuses because it hides an IPv4 address. */
function isMapped(head: readonly string[], tail: readonly string[]): boolean {
  const all = [...head, ...Array<string>(8 - head.length - tail.length).fill("0"), ...tail];
  const values = all.map((group) => Number.parseInt(group, 16));
  return values.slice(0, 5).every((value) => value === 0) && values[5] === 0xffff;
}
