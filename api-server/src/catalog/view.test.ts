import { readFileSync } from "node:fs";
import { parseCatalog } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import {
  databaseCatalogView,
  databasePlansView,
  httpPlansView,
  jobPlansView,
  storagePlansView,
} from "./view.ts";

const catalog = parseCatalog(
  readFileSync(new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);
const amount = expect.any(Number);
const prices = { hourly: amount, monthly: amount, yearly: amount };
const offer = {
  instances: { min: amount, default: amount, max: amount, editable: expect.any(Boolean) },
  storage: {
    min: amount,
    default: amount,
    max: amount,
    included: amount,
    step: amount,
    editable: expect.any(Boolean),
  },
  versions: expect.any(Array),
  default_version: expect.any(String),
  billing: { instances: expect.any(String), storage: expect.any(String) },
};
const isSorted = (numbers: number[]) => numbers.every((one, i) => i === 0 || one >= (numbers[i - 1] ?? 0));

/** Each item has the fields of the specification's tables, and no other. */
describe("the catalogs as clients see them", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/plans` | the HTTP plans
  // Shows: docs/applications.md#fields-of-answers: catalogs | the fields of the tables, and no other
  // Shows: docs/applications.md#catalogs: HTTP plans by hourly price; free ones at 0; `logs` always
  it("HTTP plans: prices, features, permissions and six capabilities, by hourly price, free ones at 0", () => {
    const plans = httpPlansView(catalog);
    for (const plan of plans) {
      expect(plan).toEqual({
        plan: expect.any(String),
        prices,
        features: expect.any(Array),
        permissions: expect.any(Object),
        capabilities: {
          logs: true,
          metrics: expect.any(Boolean),
          healthcheck: expect.any(Boolean),
          autoscaling: expect.any(Boolean),
          custom_subdomain: expect.any(Boolean),
          network_access: expect.any(Boolean),
        },
      });
    }
    expect(isSorted(plans.map((plan) => plan.prices.hourly))).toBe(true);
    expect(plans[0]).toMatchObject({ plan: "free", prices: { hourly: 0, monthly: 0, yearly: 0 } });
  });

  it("HTTP plans: prices of what is used beside them, where the catalog has some", () => {
    const [priced] = httpPlansView({ ...catalog, resourcePrices: { buildMinute: "0.25" } });
    expect(priced).toMatchObject({ resource_prices: { build_minute: 0.25 } });
    const [free] = httpPlansView({ ...catalog, resourcePrices: { buildMinute: "0" } });
    expect(free).not.toHaveProperty("resource_prices");
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/job/plans` | the job plans
  // Shows: docs/applications.md#conventions: amounts are BRL cents as JSON numbers, also fractions
  it("job plans: a price a minute, which may be a fraction of a cent, in brl", () => {
    const plans = jobPlansView(catalog);
    for (const plan of plans) {
      expect(plan).toEqual({
        plan: expect.stringMatching(/^job-/),
        price_per_minute: amount,
        currency: "brl",
        payment_mode: "per_minute",
        features: expect.any(Array),
        permissions: expect.objectContaining({ free_storage_size: expect.any(String) }),
      });
    }
    expect(plans.some(({ price_per_minute: price }) => price > 0 && price < 1)).toBe(true);
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/storage/plans` | the storage plans
  // Shows: docs/applications.md#catalogs: storage: hourly is monthly / 720, yearly 12 x monthly; else
  it("storage plans: the price of 1 GB, an hour a 720th of a month, a year twelve of them", () => {
    const plans = storagePlansView(catalog);
    for (const plan of plans) {
      expect(plan).toEqual({ storage: expect.any(String), prices, persistent: expect.any(Boolean) });
      expect(plan.prices.hourly).toBeCloseTo(plan.prices.monthly / 720, 10);
      expect(plan.prices.yearly).toBeCloseTo(plan.prices.monthly * 12, 10);
    }
    expect(new Set(plans.map(({ persistent }) => persistent))).toEqual(new Set([true, false]));
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/database/plans` | the database plans
  // Shows: docs/applications.md#fields-of-answers: catalogs | the fields of the tables, and no other
  it("database plans: db- and analytics-, with what each engine gets", () => {
    const plans = databasePlansView(catalog);
    for (const { engines, ...plan } of plans) {
      expect(plan).toEqual({
        plan: expect.stringMatching(/^(db|analytics)-/),
        prices,
        features: expect.any(Array),
      });
      for (const one of Object.values(engines)) {
        expect(one).toEqual(offer);
      }
    }
    expect(plans.find(({ plan }) => plan.startsWith("analytics-"))?.engines).toHaveProperty("clickhouse");
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/database/catalog` | the engines
  it("database engines: versions, and their plans with what each is capable of", () => {
    const engines = databaseCatalogView(catalog);
    expect(engines.map(({ id }) => id).sort()).toEqual(["clickhouse", "mariadb", "postgresql", "valkey"]);
    for (const engine of engines) {
      expect(engine).toEqual({
        id: expect.any(String),
        name: expect.any(String),
        versions: expect.any(Array),
        plans: expect.any(Array),
        configuration_fields: expect.any(Array),
        connection_fields: expect.any(Array),
      });
      for (const plan of engine.plans) {
        expect(plan).toEqual({
          id: expect.any(String),
          payment_modes: expect.any(Array),
          capability: offer,
        });
      }
    }
  });
});
