import { describe, expect, it } from "vitest";
import { canonicalInstanceUrl } from "./instance-url.ts";

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
