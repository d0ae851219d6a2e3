import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parseCatalog } from "../catalog-problems.ts";
import type { ProjectSpec } from "../project/spec.ts";
import { priceListOf } from "./prices.ts";
import { billableState } from "./state.ts";

const shipped = parseCatalog(
  readFileSync(new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);

const application = {
  type: "http",
  plan: "basic",
  paymentMode: "hourly",
  instances: 2,
  storage: { persistent: true, capacity: 5 },
} as ProjectSpec;
const database = { ...application, type: "postgresql", plan: "db-basic", instances: 3 } as ProjectSpec;

/** The shipped catalog, with another way to bill what `db-basic` offers of PostgreSQL. */
const billedBy = (billing: { instances: "per_project"; storage: "per_project_gb" | "none" }) => {
  const databasePlans = structuredClone(shipped.databasePlans);
  const offer = databasePlans.find(({ plan }) => plan === "db-basic")?.engines.postgresql;
  Object.assign(offer ?? {}, { billing });
  return { ...shipped, databasePlans };
};

// Shows: docs/billing.md#what-is-recorded: of an application or a worker the persistent capacity of its volume
test("an application has one volume for all of its instances, and a pause is part of its state", () => {
  const state = {
    plan: "basic",
    paymentMode: "hourly",
    renews: true,
    instances: 2,
    paused: false,
    billedGb: 5,
  };
  expect(billableState(shipped, application)).toEqual(state);
  expect(billableState(shipped, { ...application, type: "worker", paused: true })).toEqual({
    ...state,
    paused: true,
  });
  expect(billableState(shipped, application, { instances: 3 })).toEqual({ ...state, instances: 3 });
});

// Shows: docs/billing.md#what-is-recorded: also once it is no longer requested, for the volume is kept
test("a volume that is no longer requested is billed on; storage that was never persistent is not", () => {
  const before = billableState(shipped, application);
  const without = { ...application, storage: { persistent: false, capacity: 5 } } as ProjectSpec;
  expect(billableState(shipped, without, { before })?.billedGb).toBe(5);
  expect(billableState(shipped, without)?.billedGb).toBe(0);
  expect(billableState(shipped, { ...application, storage: undefined })?.billedGb).toBe(0);
});

// Shows: docs/billing.md#what-is-recorded: also once it is no longer requested, for the volume is kept
test("a volume that is no longer requested is billed by its size, also after a free plan", () => {
  const without = { ...application, storage: undefined };
  const before = billableState(shipped, { ...without, plan: "free" }, { volumeGb: 5 });
  expect(before?.billedGb).toBe(0);
  expect(billableState(shipped, without, { before, volumeGb: 5 })?.billedGb).toBe(5);
});

// Shows: docs/billing.md#what-is-recorded: of a database the capacity beyond what the plan includes
test("of a database the GB beyond what its plan includes are billed, for each instance or for the project", () => {
  expect(billableState(shipped, database)).toMatchObject({ instances: 3, billedGb: 12 });
  const small = { ...database, storage: { persistent: true, capacity: 1 } } as ProjectSpec;
  expect(billableState(shipped, small)?.billedGb).toBe(0);
  const perProject = billedBy({ instances: "per_project", storage: "per_project_gb" });
  expect(billableState(perProject, database)).toMatchObject({ instances: 1, billedGb: 4 });
  expect(billableState(perProject, database, { instances: 0 })).toMatchObject({ instances: 0, billedGb: 4 });
  expect(billableState(billedBy({ instances: "per_project", storage: "none" }), database)?.billedGb).toBe(0);
});

// Shows: docs/billing.md#what-is-recorded: On a free plan it is 0
test("storage of a free plan is not billed, also after a paid one", () => {
  const free = { ...application, plan: "free" } as ProjectSpec;
  expect(billableState(shipped, free, { before: billableState(shipped, application) })?.billedGb).toBe(0);
});

test("jobs, and plans that the catalog does not have, are not charged by a history", () => {
  const job = { ...application, type: "job", plan: "job-basic", paymentMode: "per_minute" } as ProjectSpec;
  expect(billableState(shipped, job)).toBeUndefined();
  expect(billableState(shipped, { ...application, plan: "gone" })).toBeUndefined();
});

// Shows: docs/billing.md#prices: A GB has the hourly price of the first persistent storage plan
test("a catalog is a list of prices of applications, databases and a GB", () => {
  const { plans, gbHour, from } = priceListOf(shipped, 7);
  expect([from, gbHour]).toEqual([7, "0.1"]);
  expect(plans.basic).toEqual({ hourly: "3", monthly: "2160", yearly: "25920", refund: "none" });
  expect(plans["db-basic"]?.hourly).toBe("6");
  expect(plans).not.toHaveProperty("job-basic");
  const [first, ...others] = shipped.httpPlans;
  const prorated = { ...shipped, httpPlans: [{ ...first, refund: "prorated" }, ...others], storagePlans: [] };
  const list = priceListOf(prorated as typeof shipped, 0);
  expect([list.plans.free?.refund, list.gbHour]).toEqual(["prorated", "0"]);
});
