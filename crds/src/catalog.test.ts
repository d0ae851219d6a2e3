import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Catalog, findPlan } from "./catalog.ts";
import { catalog } from "./catalog-problems.ts";
import { isFreePlan, versionsOfType } from "./project/index.ts";

const file = new URL("../../charts/slipway/files/catalog.yaml", import.meta.url);
const load = (): Record<string, unknown> => parse(readFileSync(file, "utf8")) as Record<string, unknown>;
const shipped: Catalog = catalog.parse(load());

const cpu = (quantity: string): number =>
  quantity.endsWith("m") ? Number(quantity.slice(0, -1)) : Number(quantity) * 1000;
const bytes = (quantity: string): number => {
  const unit = { Ki: 1, Mi: 2, Gi: 3 }[quantity.slice(-2)] ?? 0;
  return Number.parseInt(quantity, 10) * 1024 ** unit;
};

/** A change to a fresh copy of the shipped catalog, and where it must be refused. */
const broken: [string, (file: ReturnType<typeof load>) => void, string][] = [
  ["a price that is a number", (f) => set(f, "httpPlans.1.prices.hourly", 3), "httpPlans.1.prices.hourly"],
  ["an unknown key", (f) => set(f, "httpPlans.0.colour", "red"), "httpPlans.0"],
  ["an http plan with a job's prefix", (f) => set(f, "httpPlans.1.plan", "job-x"), "httpPlans.1.plan"],
  ["a plan id twice", (f) => set(f, "httpPlans.1.plan", "premium"), ""],
  [
    "storage hours that are not a 720th",
    (f) => set(f, "storagePlans.1.prices.hourly", "0.2"),
    "storagePlans.1.prices.hourly",
  ],
  ["a free plan with a price", (f) => set(f, "httpPlans.0.prices.monthly", "1"), "httpPlans.0.prices"],
  ["a plan without a price that is not free", (f) => set(f, "httpPlans.0.free", false), "httpPlans.0.prices"],
  [
    "a version that its engine lacks",
    (f) => set(f, "engines.0.versions", ["15"]),
    "databasePlans.0.engines.postgresql.versions",
  ],
  [
    "limits of one scope that differ",
    (f) =>
      set(f, "databasePlans.0.limit", { scope: "free-instances", counts: "projects", max: 9, code: "X" }),
    "",
  ],
  [
    "logs switched off",
    (f) => set(f, "httpPlans.0.capabilities.logs", false),
    "httpPlans.0.capabilities.logs",
  ],
];

function set(target: unknown, path: string, value: unknown): void {
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  const parent = keys.reduce((at, key) => (at as Record<string, unknown>)[key], target);
  (parent as Record<string, unknown>)[last] = value;
}

describe("the shipped catalog", () => {
  const plans = [...shipped.httpPlans, ...shipped.jobPlans, ...shipped.databasePlans];

  // Shows: docs/applications.md#catalogs: a plan for every type, from free to business
  it("has plans for every type and profile", () => {
    const ids = plans.map(({ plan }) => plan);
    for (const prefix of ["job-", "db-", "analytics-", "cache-", "queue-"]) {
      expect(
        ids.some((id) => id.startsWith(prefix)),
        prefix,
      ).toBe(true);
    }
    for (const id of [
      "free",
      "business",
      "db-free",
      "cache-free",
      "queue-free",
      "job-basic",
      "job-premium_plus",
    ]) {
      expect(ids).toContain(id);
    }
    expect(findPlan(shipped, "job-business")?.plan).toBe("job-business");
    expect(findPlan(shipped, "nothing")).toBeUndefined();
  });

  it.each(plans.map((plan) => [plan.plan, plan] as const))(
    "%s fits 2 cores and asks for less than it sells",
    (_, plan) => {
      const { requests, limits } = plan.resources;
      const offers = "engines" in plan ? Object.values(plan.engines) : [];
      const most = Math.max(1, ...offers.map(({ instances }) => instances.max));
      expect(cpu(requests.cpu) * most).toBeLessThanOrEqual(200);
      expect(bytes(requests.memory) * most).toBeLessThanOrEqual(1024 ** 3);
      expect(cpu(requests.cpu)).toBeLessThanOrEqual(cpu(limits.cpu));
      expect(bytes(requests.memory)).toBeLessThanOrEqual(bytes(limits.memory));
      expect(plan.free).toBe(isFreePlan(plan.plan));
    },
  );

  it("offers the versions that a Project accepts", () => {
    for (const { id, versions } of shipped.engines) {
      expect(versions).toEqual([...versionsOfType[id]]);
    }
  });
});

// Shows: docs/applications.md#catalogs: storage: hourly is monthly / 720, yearly 12 x monthly; else
describe("a catalog that does not hold", () => {
  it.each(broken)("refuses %s", (_, change, where) => {
    const copy = load();
    change(copy);
    const result = catalog.safeParse(copy);
    expect(result.success).toBe(false);
    expect(result.error?.issues.map(({ path }) => path.join("."))).toContain(where);
  });
});
