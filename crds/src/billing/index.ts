/** What plans cost, computed from the history of a project. `plan-charges.ts` is the beginning; docs/billing.md has the rules. */

export { type PlanAdjustment, planAdjustments, type RecordedPlanCharge } from "./adjustments.ts";
export { checkpointOf } from "./checkpoint.ts";
export {
  type CostAmount,
  type CostForecast,
  type CostKind,
  type CostOfDay,
  costKinds,
  forecastCost,
  forecastDays,
  type Renewal,
} from "./forecast.ts";
export {
  type BillableChange,
  type BillableCheckpoint,
  type BillableHistory,
  type BillableState,
  originOf,
  type PlanPaymentMode,
} from "./history.ts";
export {
  type ChargeWindow,
  type PlanCharge,
  type PlanChargeKind,
  planChargeKinds,
  planCharges,
} from "./plan-charges.ts";
export {
  type PlanPrices,
  type PriceList,
  planPrices,
  pricedResources,
  priceListOf,
  type ResourcePrice,
} from "./prices.ts";
export {
  buildCharge,
  type EndedBuild,
  type ResourceCharge,
  type ResourceChargeKind,
  resourceChargeKinds,
} from "./resource-charges.ts";
export { billableState, statusState } from "./state.ts";
export { type TaxLine, type TaxRate, type TaxTable, taxCents, taxLines, taxRatesOf } from "./taxes.ts";
