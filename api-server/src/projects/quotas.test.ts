import { readFileSync } from "node:fs";
import { parseCatalog } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { planQuotaFailure } from "./quotas.ts";

const catalog = parseCatalog(
  readFileSync(new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);
const plans = [...catalog.httpPlans, ...catalog.jobPlans, ...catalog.databasePlans];

describe("a plan of the shipped catalog", () => {
  // Shows: docs/applications.md#errors-project-creation: 409 | `DB_FREE_PROJECT_LIMIT_REACHED`, `limit`
  // Shows: docs/applications.md#errors-project-creation: 409 | `MANAGED_SERVICE_FREE_LIMIT_REACHED`
  it.each([
    ["free", 2, "FREE_PLAN_INSTANCE_LIMIT_REACHED"],
    ["db-free", 2, "DB_FREE_PROJECT_LIMIT_REACHED"],
    ["cache-free", 1, "MANAGED_SERVICE_FREE_LIMIT_REACHED"],
    ["queue-free", 1, "MANAGED_SERVICE_FREE_LIMIT_REACHED"],
  ])("%s has a quota of %i, past which creation answers 409 %s", (id, max, code) => {
    const plan = plans.find((one) => one.plan === id);
    const refusal = planQuotaFailure({ reserved: false, reason: "limit", used: max, max }, id, plan);
    expect(refusal?.status).toBe(409);
    expect(plan?.limit?.max).toBe(max);
    expect(refusal?.toBody()).toEqual({ status: "failed", message: expect.any(String), code, limit: max });
  });

  it("without a limit has none", () => {
    expect(plans.filter(({ limit }) => limit).map(({ plan }) => plan)).toHaveLength(4);
  });
});

describe("planQuotaFailure", () => {
  const free = plans.find(({ plan }) => plan === "free");

  it("is undefined for a reservation", () => {
    expect(planQuotaFailure({ reserved: true, version: "1" }, "free", free)).toBeUndefined();
  });

  it("says how many instances still fit when some do", () => {
    const refusal = planQuotaFailure({ reserved: false, reason: "limit", used: 1, max: 2 }, "free", free);
    expect(refusal?.toBody()).toMatchObject({
      code: "FREE_PLAN_INSTANCE_LIMIT_EXCEEDED",
      limit: 2,
      remaining: 1,
    });
  });

  it("has nothing left when the limit was lowered since", () => {
    const refusal = planQuotaFailure({ reserved: false, reason: "limit", used: 5, max: 2 }, "free", free);
    expect(refusal?.code).toBe("FREE_PLAN_INSTANCE_LIMIT_REACHED");
  });

  it("distinguishes a plan's capacity from an organization's limit", () => {
    const refusal = planQuotaFailure({ reserved: false, reason: "capacity", limit: 3 }, "free", free);
    expect([refusal?.status, refusal?.code]).toEqual([409, "INSUFFICIENT_PLAN_CAPACITY"]);
  });
});
