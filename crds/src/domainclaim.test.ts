import { describe, expect, it } from "vitest";
import { challengeValue, customDomainRecords, isInZone, isReservedHostname } from "./domainclaim.ts";

describe("customDomainRecords", () => {
  // Shows: docs/applications.md#fields-of-answers: custom domain setup | `hostname`, `status`
  it("requires the proof and the route to the project", () => {
    const records = customDomainRecords({
      hostname: "shop.example.com",
      organization: "acme",
      target: "shop-1a2b3c4d.apps.localhost",
    });
    expect(records).toEqual([
      {
        type: "TXT",
        name: "_slipway-challenge.shop.example.com",
        value: expect.stringMatching(/^slipway-verification=[0-9a-f]{32}$/),
      },
      { type: "CNAME", name: "shop.example.com", value: "shop-1a2b3c4d.apps.localhost" },
    ]);
  });

  it("gives another organization, and another hostname, another proof", () => {
    const values = [
      challengeValue("acme", "a.example.com"),
      challengeValue("globex", "a.example.com"),
      challengeValue("acme", "b.example.com"),
    ];
    expect(new Set(values).size).toBe(3);
  });
});

describe("isReservedHostname", () => {
  const platform = { zone: "apps.example.org", reserved: ["api", "console.example.org"] };
  it.each([
    ["apps.example.org", true],
    ["api.apps.example.org", true],
    ["v1.api.apps.example.org", true],
    ["console.example.org", true],
    ["a.console.example.org", true],
    ["shop.apps.example.org", false],
    ["myapi.apps.example.org", false],
    ["example.org", false],
    ["shop.example.com", false],
  ])("%s: %s", (hostname, reserved) => {
    expect(isReservedHostname(hostname, platform)).toBe(reserved);
  });

  // Shows: docs/applications.md#project-settings: 2. one new custom domain a request; reserved names are
  it("distinguishes the zone from what only ends like it", () => {
    expect(isInZone("a.apps.example.org", "apps.example.org")).toBe(true);
    expect(isInZone("a.myapps.example.org", "apps.example.org")).toBe(false);
  });
});
