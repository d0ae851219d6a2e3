import { expect, test } from "vitest";
import { canonicalAddress } from "./event.ts";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::ffff:c000:201", "192.0.2.1"],
  ["fe80::1%eth0", "fe80::1"],
  ["192.0.2.256", undefined],
  ["", undefined],
  ["example.com", undefined],
])("%s is the address %s", (text, address) => {
  expect(canonicalAddress(text)).toBe(address);
});
