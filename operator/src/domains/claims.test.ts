import { KubeClient, Store } from "@slipway/controller-runtime";
import { type DomainClaim, domainClaim, type Project } from "@slipway/crds";
import { expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleClaim } from "../../../test/kit/operator/claims.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { domainClaimResource } from "../resources.ts";
import { claimHostname, isHolder, keptAheadMs } from "./claims.ts";

const now = new Date("2026-01-01T00:00:30Z");

function project(generation = 4): Project {
  const example = exampleProject({ namespace: "slipway-org-alpha", name: "p1" });
  return { ...example, metadata: { ...example.metadata, uid: "project-uid", generation } };
}

function reservedFor(generation: number, at: string) {
  const claim = exampleClaim("shop.example.com");
  return { ...claim, spec: { ...claim.spec, reservedFor: { generation, at } } };
}

test.each<[string, number, string, number]>([
  ["for the next generation", 5, "2026-01-01T00:00:00Z", 30_000],
  ["for the next generation a moment ago", 5, "2026-01-01T00:00:20.500Z", 50_500],
  ["for one that is here", 4, "2026-01-01T00:00:00Z", 0],
  ["for one that has passed", 3, "2026-01-01T00:00:00Z", 0],
  ["and forgotten for a minute", 5, "2025-12-31T23:59:30Z", 0],
  ["by a clock that is ahead", 5, "2026-01-01T00:00:40Z", 70_000],
])("a claim that is reserved %s", (_, generation, at, keptMs) => {
  expect(keptAheadMs(reservedFor(generation, at), project(), now)).toBe(keptMs);
});

test("a claim of the operator is reserved for nothing", () => {
  expect(keptAheadMs(exampleClaim("shop.example.com"), project(), now)).toBe(0);
});

test("a project holds the claims that name it wholly", () => {
  expect(isHolder(project(), exampleClaim())).toBe(true);
  const own = exampleClaim().spec.projectRef;
  for (const other of [{ uid: "another" }, { namespace: "slipway-org-beta" }, { name: "p2" }]) {
    const claim = exampleClaim("shop.example.com", { spec: { projectRef: { ...own, ...other } } });
    expect(isHolder(project(), claim)).toBe(false);
  }
});

test.each([
  ["the project's own", "project-uid", true],
  ["of another project", "another", false],
])("a claim that the cache does not have yet is read: %s", async (_, uid, isClaimed) => {
  const api = await FakeApiserver.start();
  const client = KubeClient.forUrl(api.url);
  try {
    const claim = { hostname: "shop.example.com", organization: "alpha", kind: "custom" as const };
    const holder = { ...project(), metadata: { ...project().metadata, uid } };
    await client.create(domainClaimResource, domainClaim(holder, claim));
    const claims = new Store<DomainClaim>();
    expect(await claimHostname(project(), claim, { client, claims })).toBe(isClaimed);
  } finally {
    await client.close();
    await api.stop();
  }
});
