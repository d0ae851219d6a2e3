import { promisify } from "node:util";
import { isInCidrs } from "@slipway/git";
import { expect, test } from "vitest";
import { receiverAddress } from "./address.ts";
import { connectionFailure } from "./connection-failure.ts";

const options = (addresses: string[], allowed: string[] = []) => ({
  allowedHosts: new Set(allowed),
  resolve: async () => addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
});
type All = (host: string, options: { all: true }) => Promise<{ address: string; family: number }[]>;
const addressesOf = async (...args: Parameters<typeof receiverAddress>) => {
  const { host, lookup } = receiverAddress(...args);
  try {
    return await (promisify(lookup) as unknown as All)(host, { all: true });
  } catch (error) {
    throw connectionFailure(error);
  }
};

// Shows: docs/log-drains.md#addresses: never to an address that is not public
test.each([
  ["127.0.0.1", []],
  ["[::1]", []],
  ["fd00::1", []],
  ["::ffff:127.0.0.1", []],
  ["169.254.169.254", []],
  ["10.96.0.1", []],
  ["logs.example.com", ["10.0.0.1"]],
  ["logs.example.com", ["1.1.1.1", "127.0.0.1"]],
])("%s with the addresses %j is refused", async (host, addresses) => {
  await expect(addressesOf(host, 443, options(addresses))).rejects.toMatchObject({
    reason: "AddressRefused",
    message: "the receiver's address is not a public one",
  });
});

test("public addresses of the cluster's own are refused, also as IPv6 ones", async () => {
  const own = { ...options(["1.1.1.1", "8.8.8.8"]), isRefused: isInCidrs(["8.8.8.0/24", "2606:4700::/32"]) };
  for (const host of ["logs.example.com", "8.8.8.8", "[::ffff:8.8.8.8]", "2606:4700::1111"]) {
    await expect(addressesOf(host, 443, own)).rejects.toMatchObject({ reason: "AddressRefused" });
  }
  expect(isIn(() => receiverAddress("1.1.1.1", 443, own))).toBe(true);
});

test("all public addresses are offered, of both families", async () => {
  expect(await addressesOf("logs.example.com", 443, options(["2606:4700::1111", "1.1.1.1"]))).toEqual([
    { address: "2606:4700::1111", family: 6 },
    { address: "1.1.1.1", family: 4 },
  ]);
});

test("what is allowed is allowed on its port alone, a name or an address", async () => {
  const allowed = options(["10.0.0.1"], ["logs.example.com:6514", "[fd00::1]:6514"]);
  expect(await addressesOf("Logs.example.com", 6514, allowed)).toEqual([{ address: "10.0.0.1", family: 4 }]);
  await expect(addressesOf("logs.example.com", 443, allowed)).rejects.toMatchObject({
    reason: "AddressRefused",
  });
  for (const host of ["fd00::1", "[FD00:0::1]"]) {
    expect(isIn(() => receiverAddress(host, 6514, allowed))).toBe(true);
    expect(isIn(() => receiverAddress(host, 443, allowed))).toBe(false);
  }
});

function isIn(call: () => unknown): boolean {
  try {
    call();
    return true;
  } catch {
    return false;
  }
}

test("a name without an address is unavailable, in words that name none", async () => {
  await expect(addressesOf("logs.example.com", 443, options([]))).rejects.toMatchObject({
    reason: "ReceiverUnavailable",
    message: "the receiver's name cannot be resolved",
  });
});
