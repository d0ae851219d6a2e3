import type { ProjectPlan, ProjectSpec } from "@slipway/crds";
import { expect, it } from "vitest";
import { quotaRequest } from "./quota-request.ts";

const identity = { organizationId: "acme", projectId: "p1" };
const spec = { type: "http", name: "shop-front", plan: "free", instances: 2 } as ProjectSpec;
const limited = (counts: "instances" | "projects") =>
  ({ plan: "free", limit: { scope: "free", counts, max: 2, code: "REACHED" } }) as ProjectPlan;
const scaled = { ...spec, autoscaling: { enabled: true, maxInstances: 5 } } as ProjectSpec;

it.each([
  ["its instances where the limit counts them", spec, limited("instances"), 2],
  ["one without a number of instances", { ...spec, instances: undefined }, limited("instances"), 1],
  ["what it may scale up to", scaled, limited("instances"), 5],
  ["one where the limit counts projects", spec, limited("projects"), 1],
])("requests %s", (_, given, plan, amount) => {
  expect(quotaRequest(identity, given, plan)).toEqual({
    ...identity,
    plan: "free",
    amount,
    limit: { scope: "free", max: 2 },
  });
});

it.each([
  ["a plan without a limit", { plan: "basic" } as ProjectPlan],
  ["a plan that is not in the catalog", undefined],
])("requests one, limited by nothing but capacity, on %s", (_, plan) => {
  expect(quotaRequest(identity, spec, plan)).toEqual({ ...identity, plan: "free", amount: 1 });
});
