import { describe, expect, test } from "vitest";
import { parseCidr, subtractCidrs } from "./cidr.ts";

test.each(["10.0.0.0", "10.0.0.0/33", "example.org/8", "::/129", "10.0.0.0/x", "10.0.0.0/8/8", ""])(
  "%j is no CIDR",
  (text) => {
    expect(() => parseCidr(text)).toThrow("is not a CIDR");
  },
);

describe("subtractCidrs", () => {
  test.each<[string, string[], string[], string[]]>([
    ["nothing denied", ["10.0.0.0/8"], [], ["10.0.0.0/8"]],
    ["host bits ignored", ["10.1.2.3/8"], [], ["10.0.0.0/8"]],
    ["all denied", ["10.0.0.0/8"], ["0.0.0.0/0"], []],
    ["a half", ["10.0.0.0/8"], ["10.128.0.0/9"], ["10.0.0.0/9"]],
    ["one address", ["192.0.2.0/30"], ["192.0.2.1/32"], ["192.0.2.0/32", "192.0.2.2/31"]],
    ["denied elsewhere", ["192.0.2.0/24"], ["198.51.100.0/24"], ["192.0.2.0/24"]],
    ["neighbours joined", ["192.0.2.0/25", "192.0.2.128/25"], [], ["192.0.2.0/24"]],
    ["overlaps joined", ["192.0.2.0/24", "192.0.2.7/32"], [], ["192.0.2.0/24"]],
    ["families apart", ["0.0.0.0/0", "::/0"], ["0.0.0.0/0"], ["::/0"]],
    ["IPv6", ["2001:db8::/32"], ["2001:db8:8000::/33"], ["2001:db8::/33"]],
    ["IPv6 with an IPv4 tail", ["::ffff:10.0.0.0/104"], [], ["::ffff:a00:0/104"]],
  ])("%s", (_, allowed, denied, expected) => {
    expect(subtractCidrs(allowed, denied)).toEqual(expected);
  });

  test("leaves the whole internet but one address as 32 ranges", () => {
    const left = subtractCidrs(["0.0.0.0/0"], ["203.0.113.7/32"]);
    expect(left).toHaveLength(32);
    const addresses = left.map(parseCidr).reduce((sum, { first, last }) => sum + (last - first + 1n), 0n);
    expect(addresses).toBe((1n << 32n) - 1n);
  });
});
