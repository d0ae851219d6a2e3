import {
  type Catalog,
  capabilities,
  compareDecimal,
  type DatabasePlan,
  type Engine,
  type EngineOffer,
  type HttpPlan,
  type JobPlan,
  type Prices,
  parseDecimal,
  pricedResources,
  type StoragePlan,
} from "@slipway/crds";
import { z } from "zod";

/** The items of the catalogs as `/v1` shows them, with their schemas. Pure. */

const prices = z
  .object({ hourly: z.number(), monthly: z.number(), yearly: z.number() })
  .describe("BRL cents, which may be fractions.");
const features = z.array(z.string());
const permissions = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));

/** Absent where nothing of it costs. */
const resourcePrices = z
  .object({ build_minute: z.number().optional().describe("A begun minute of a build.") })
  .optional()
  .describe(
    "BRL cents, which may be fractions, for what is used beside the plan; what is absent costs nothing.",
  );

export const httpPlanSchema = z.object({
  plan: z.string(),
  prices,
  features,
  permissions,
  capabilities,
  resource_prices: resourcePrices,
});

export const jobPlanSchema = z.object({
  plan: z.string(),
  price_per_minute: z.number(),
  currency: z.literal("brl"),
  payment_mode: z.literal("per_minute"),
  features,
  permissions,
});

export const storagePlanSchema = z.object({ storage: z.string(), prices, persistent: z.boolean() });

const bounds = { min: z.int(), default: z.int(), max: z.int(), editable: z.boolean() };
const offer = z.object({
  instances: z.object(bounds),
  storage: z.object({ ...bounds, included: z.int(), step: z.int() }),
  versions: z.array(z.string()),
  default_version: z.string(),
  billing: z.object({ instances: z.string(), storage: z.string() }),
});

export const databasePlanSchema = z.object({
  plan: z.string(),
  prices,
  features,
  engines: z.record(z.string(), offer),
});

const field = z.object({
  name: z.string(),
  type: z.string(),
  required: z.boolean(),
  description: z.string(),
});

export const engineSchema = z.object({
  id: z.string(),
  name: z.string(),
  versions: z.array(z.string()),
  plans: z.array(z.object({ id: z.string(), payment_modes: z.array(z.string()), capability: offer })),
  configuration_fields: z.array(field.loose()),
  connection_fields: z.array(field.loose()),
});

/** The plan catalog as the five public routes show it. Amounts are BRL cents, as JSON numbers. Pure. */

function pricesView({ hourly, monthly, yearly }: Prices) {
  return { hourly: Number(hourly), monthly: Number(monthly), yearly: Number(yearly) };
}

const byHourlyPrice = (a: { prices: Prices }, b: { prices: Prices }): number =>
  compareDecimal(parseDecimal(a.prices.hourly), parseDecimal(b.prices.hourly));

/** Sorted by hourly price, as the specification says. */
export function httpPlansView(catalog: Catalog) {
  const { buildMinute } = pricedResources(catalog);
  return [...catalog.httpPlans]
    .sort(byHourlyPrice)
    .map(({ plan, prices, features, permissions, capabilities }: HttpPlan) => ({
      plan,
      prices: pricesView(prices),
      features,
      permissions,
      capabilities,
      ...(buildMinute === undefined ? {} : { resource_prices: { build_minute: Number(buildMinute) } }),
    }));
}

export function jobPlansView({ jobPlans, currency }: Catalog) {
  return jobPlans.map(({ plan, pricePerMinute, features, permissions }: JobPlan) => ({
    plan,
    price_per_minute: Number(pricePerMinute),
    currency,
    payment_mode: "per_minute",
    features,
    permissions,
  }));
}

export function storagePlansView({ storagePlans }: Catalog) {
  return storagePlans.map(({ storage, prices, persistent }: StoragePlan) => ({
    storage,
    prices: pricesView(prices),
    persistent,
  }));
}

/** What the catalog calls valkey with a `db-` plan is the key-value engine; its name stays valkey. */
function offerView({ instances, storage, versions, defaultVersion, billing }: EngineOffer) {
  return { instances, storage, versions, default_version: defaultVersion, billing };
}

/** `db-*` and `analytics-*`: the plans of caches and queues are seen in the engines' catalog alone. */
export function databasePlansView({ databasePlans }: Catalog) {
  const shown = databasePlans.filter(({ plan }) => /^(db|analytics)-/.test(plan));
  return shown.sort(byHourlyPrice).map(({ plan, prices, features, engines }: DatabasePlan) => ({
    plan,
    prices: pricesView(prices),
    features,
    engines: Object.fromEntries(Object.entries(engines).map(([name, offer]) => [name, offerView(offer)])),
  }));
}

export function databaseCatalogView({ engines, databasePlans }: Catalog) {
  return engines.map((engine: Engine) => ({
    id: engine.id,
    name: engine.name,
    versions: engine.versions,
    plans: databasePlans.flatMap(({ plan, engines: offers }) => {
      const offer = offers[engine.id];
      return offer ? [{ id: plan, payment_modes: engine.paymentModes, capability: offerView(offer) }] : [];
    }),
    configuration_fields: engine.configurationFields,
    connection_fields: engine.connectionFields,
  }));
}
