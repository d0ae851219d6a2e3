import { expect, test } from "vitest";
import { withoutAddresses } from "./issuer-text.ts";

// Shows: docs/resources/domainclaim.md#status: `certificateFailure` | since when issuing
test.each([
  [
    "failed to sign: Error making API request. URL: POST https://vault.internal:8200/v1/pki/sign. Code: 403",
    "failed to sign: Error making API request. URL: POST […] Code: 403",
  ],
  [
    "dial tcp: lookup vault.internal on 10.96.0.10:53: no such host",
    "dial tcp: lookup […] on […] no such host",
  ],
  ["dial tcp 192.0.2.7:443: connect: connection refused", "dial tcp […] connect: connection refused"],
  ["dial tcp [fd00::12]:443: i/o timeout", "dial tcp […] i/o timeout"],
  ["no route to fd00::12, or localhost:8200", "no route to […], or […]"],
  ["account ca-admin@example.net is gone", "account […] is gone"],
  ['ref "HTTPS://u:p@ca/x?token=1"', 'ref "[…]"'],
  [
    "acme: authorization error for shop.example.com: 403 urn:ietf:params:acme:error:unauthorized",
    "acme: authorization error for shop.example.com: 403 urn:ietf:params:acme:error:unauthorized",
  ],
  [
    "no TXT record at _acme-challenge.shop.example.com.",
    "no TXT record at _acme-challenge.shop.example.com.",
  ],
  ["found at other-shop.example.com", "found at […]"],
])("%s", (text, shown) => {
  expect(withoutAddresses(text, "shop.example.com")).toBe(shown);
});

test("a long text is cut, also within an address", () => {
  expect(withoutAddresses("x ".repeat(5_000), "shop.example.com")).toHaveLength(1_024);
  expect(withoutAddresses("a.".repeat(500_000), "shop.example.com")).toBe("[…]");
});
