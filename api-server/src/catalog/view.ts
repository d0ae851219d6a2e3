import {
  type Catalog,
  compareDecimal,
  type DatabasePlan,
  type Engine,
  type EngineOffer,
  type HttpPlan,
  type JobPlan,
  type Prices,
  parseDecimal,
  type StoragePlan,
} from "@slipway/crds";

/** The plan catalog as the five public routes show it. Amounts are BRL cents, as JSON numbers. Pure. */

function pricesView({ hourly, monthly, yearly }: Prices) {
  return { hourly: Number(hourly), monthly: Number(monthly), yearly: Number(yearly) };
}

const byHourlyPrice = (a: { prices: Prices }, b: { prices: Prices }): number =>
  compareDecimal(parseDecimal(a.prices.hourly), parseDecimal(b.prices.hourly));

/** Sorted by hourly price, as the specification says. */
export function httpPlansView({ httpPlans }: Catalog) {
  return [...httpPlans]
    .sort(byHourlyPrice)
    .map(({ plan, prices, features, permissions, capabilities }: HttpPlan) => ({
      plan,
      prices: pricesView(prices),
      features,
      permissions,
      capabilities,
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
