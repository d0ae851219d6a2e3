import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalInstanceUrl, isPublicAddress } from "./addresses.ts";

describe("an address is not public", () => {
  it.each([
    "0.0.0.0",
    "10.244.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "2001::1",
    "2002:7f00:1::",
    "3fff::1",
    "",
    "localhost",
    "127.1",
    "0x7f000001",
  ])("%s", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe("an address is public", () => {
  it.each([
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a01:4f8::1",
    "::ffff:1.1.1.1",
    "64:ff9b::1.1.1.1",
    "64:ff9b::101:101",
  ])("%s", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  it("in IPv4 exactly where it is in every IPv6 form of it", () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const expected = isPublicAddress(address);
        expect(isPublicAddress(`::ffff:${address}`)).toBe(expected);
        expect(isPublicAddress(`64:ff9b::${address}`)).toBe(expected);
      }),
    );
  });
});

// Shows: docs/git.md#over-v1: 400 `GIT_INSTANCE_URL_INVALID` | the address is not
describe("the address of an instance", () => {
  it.each([
    ["https://git.example.com", "https://git.example.com"],
    ["https://git.example.com/", "https://git.example.com"],
    ["https://GIT.example.com:443/", "https://git.example.com"],
    ["https://git.example.com:8443", "https://git.example.com:8443"],
    ["https://example.com/code/git/", "https://example.com/code/git"],
    ["https://git.exämple.com", "https://git.xn--exmple-cua.com"],
    ["https://[2606:4700::1111]:3000", "https://[2606:4700::1111]:3000"],
  ])("%s is %s", (given, canonical) => {
    expect(canonicalInstanceUrl(given)).toBe(canonical);
    expect(canonicalInstanceUrl(canonical)).toBe(canonical);
  });

  it.each([
    "",
    "git.example.com",
    "http://git.example.com",
    "ssh://git@git.example.com",
    "file:///etc/passwd",
    "https:git.example.com",
    "https:///git.example.com",
    "https://user@git.example.com",
    "https://user:token@git.example.com",
    "https://@git.example.com",
    "https://git.example.com?token=x",
    "https://git.example.com/#x",
    "https://git.example.com.",
    "https://git.example.com/a b",
    "https://git.example.com/%2e%2e/x",
    "https://git.example.com/a/../b",
    "https://git.example.com/.",
    "https://git.example.com\\@evil.example.com",
    " https://git.example.com",
    "https://git.example.com\n",
    `https://git.example.com/${"a".repeat(600)}`,
  ])("%j is refused", (given) => {
    expect(() => canonicalInstanceUrl(given)).toThrow(
      expect.objectContaining({ name: "GitError", code: "InstanceUrlInvalid" }),
    );
  });
});
