import { expect, test } from "vitest";
import { addressOf } from "./address.ts";

const options = (addresses: string[], allowed: string[] = []) => ({
  allowedHosts: new Set(allowed),
  resolve: async () => addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
});

// Shows: docs/log-drains.md#addresses: never to an address that is not public
test.each([
  ["127.0.0.1", []],
  ["[::1]", []],
  ["::ffff:127.0.0.1", []],
  ["169.254.169.254", []],
  ["10.96.0.1", []],
  ["logs.example.com", ["10.0.0.1"]],
  ["logs.example.com", ["1.1.1.1", "127.0.0.1"]],
])("%s with the addresses %j is refused", async (host, addresses) => {
  await expect(addressOf(host, 443, options(addresses))).rejects.toMatchObject({ reason: "AddressRefused" });
});

test("a public address is taken, and one that is allowed on its port alone", async () => {
  expect(await addressOf("logs.example.com", 443, options(["1.1.1.1"]))).toBe("1.1.1.1");
  const allowed = options(["10.0.0.1"], ["logs.example.com:6514"]);
  expect(await addressOf("logs.example.com", 6514, allowed)).toBe("10.0.0.1");
  await expect(addressOf("logs.example.com", 443, allowed)).rejects.toMatchObject({
    reason: "AddressRefused",
  });
});

test("a name without an address is unavailable, in words that name none", async () => {
  const resolve = () => Promise.reject(new Error("getaddrinfo ENOTFOUND via 10.96.0.10"));
  await expect(
    addressOf("logs.example.com", 443, { allowedHosts: new Set(), resolve }),
  ).rejects.toMatchObject({
    reason: "ReceiverUnavailable",
    message: "the receiver's name cannot be resolved",
  });
});
