import { expect, test } from "vitest";
import { addressOf, clientAddress, trustedProxies } from "./client-address.ts";

const isTrusted = trustedProxies(["10.0.0.0/8", "fd00::/8", "192.0.2.7"]);

test.each([
  ["203.0.113.9:4711", "", "203.0.113.9"],
  ["203.0.113.9", "", "203.0.113.9"],
  ["[2001:db8::1]:4711", "", "2001:db8::1"],
  ["[::ffff:203.0.113.9]:1", "", "203.0.113.9"],
  // Nobody's word is taken but that of trusted proxies.
  ["203.0.113.9:4711", "198.51.100.1", "203.0.113.9"],
  ["10.1.2.3:1", "198.51.100.1", "198.51.100.1"],
  ["10.1.2.3:1", "1.1.1.1, 198.51.100.1", "198.51.100.1"],
  ["10.1.2.3:1", "1.1.1.1, 198.51.100.1, 192.0.2.7", "198.51.100.1"],
  ["10.1.2.3:1", "1.1.1.1,fd00::5", "1.1.1.1"],
  // What is no address ends the chain: the last one that is known counts.
  ["10.1.2.3:1", "198.51.100.1, nonsense", "10.1.2.3"],
  ["10.1.2.3:1", "' OR 1=1 --", "10.1.2.3"],
  ["10.1.2.3:1", "10.9.9.9", "10.9.9.9"],
  ["10.1.2.3:1", `${"1.1.1.1, ".repeat(10_000)}198.51.100.1`, "198.51.100.1"],
  ["@", "", "::"],
  ["", "198.51.100.1", "198.51.100.1"],
])("%s, forwarded for %s: %s", (peer, forwardedFor, client) => {
  expect(clientAddress(peer, forwardedFor, isTrusted)).toBe(client);
});

test("addresses in their spellings", () => {
  expect(["fe80::1%eth0", "[::1]", " 127.0.0.1 ", "1.2.3", "example.org:80"].map(addressOf)).toEqual([
    "fe80::1",
    "::1",
    "127.0.0.1",
    undefined,
    undefined,
  ]);
});

test("what is no range is refused", () => {
  expect(() => trustedProxies(["example.org"])).toThrow("neither");
});
