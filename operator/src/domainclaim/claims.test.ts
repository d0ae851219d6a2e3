import type { Project } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleClaim } from "../testing/claims.ts";
import { exampleProject } from "../testing/projects.ts";
import { holds, keptAheadMs } from "./claims.ts";

const now = new Date("2026-01-01T00:00:30Z");

function project(generation = 4): Project {
  const made = exampleProject({ namespace: "slipway-org-alpha", name: "p1" });
  return { ...made, metadata: { ...made.metadata, uid: "project-uid", generation } };
}

function claimedFor(generation: string | undefined, creationTimestamp = "2026-01-01T00:00:00Z") {
  const annotations =
    generation === undefined ? undefined : { "slipway.dev/claimed-for-generation": generation };
  return exampleClaim("shop.example.com", {
    metadata: { name: "shop.example.com", uid: "u", creationTimestamp, annotations },
  });
}

test.each<[string, string | undefined, string | undefined, number]>([
  ["made ahead of the next generation", "5", undefined, 30_000],
  ["made ahead of one that is here", "4", undefined, 0],
  ["made ahead of one that has passed", "3", undefined, 0],
  ["made ahead, and forgotten for a minute", "5", "2025-12-31T23:59:30Z", 0],
  ["made ahead by a clock that is ahead, too", "5", "2026-01-01T00:00:40Z", 70_000],
  ["made by the operator", undefined, undefined, 0],
  ["with an annotation that is no number", "soon", undefined, 0],
])("a claim %s", (_, generation, created, keptMs) => {
  expect(keptAheadMs(claimedFor(generation, created), project(), now)).toBe(keptMs);
});

test.each<[string, string, string, number]>([
  ["kept for the next generation a moment ago", "5", "2026-01-01T00:00:20.500Z", 50_500],
  ["kept for the next generation, and forgotten for a minute", "5", "2025-12-31T23:59:30Z", 0],
  ["kept for one that is here", "4", "2026-01-01T00:00:20Z", 0],
  ["kept at no moment at all, so since it was made", "5", "soon", 0],
])("an old claim %s", (_, generation, keptAt, keptMs) => {
  const claim = claimedFor(generation, "2025-01-01T00:00:00Z");
  Object.assign(claim.metadata.annotations ?? {}, { "slipway.dev/claimed-at": keptAt });
  expect(keptAheadMs(claim, project(), now)).toBe(keptMs);
});

test("a project holds the claims that name it wholly", () => {
  expect(holds(project(), exampleClaim())).toBe(true);
  const own = exampleClaim().spec.projectRef;
  for (const other of [{ uid: "another" }, { namespace: "slipway-org-beta" }, { name: "p2" }]) {
    const claim = exampleClaim("shop.example.com", { spec: { projectRef: { ...own, ...other } } });
    expect(holds(project(), claim)).toBe(false);
  }
});
