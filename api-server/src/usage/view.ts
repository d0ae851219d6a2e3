import {
  type BillingCycle,
  type CostAmount,
  type CostForecast,
  type CostOfDay,
  costKinds,
  forecastCost,
  formatDecimal,
  parseDecimal,
  planPrices,
  sumDecimals,
} from "@slipway/crds";
import type { CostSum, OneProjectCost, OrganizationCost, ProjectCost } from "@slipway/ledger";
import { z } from "zod";
import { cycleView, runPagination } from "../jobs/run.ts";

/** What was charged, as `/v1` shows it. Pure. Amounts are BRL cents as decimals in text: no client's number type loses a fraction. */

const amount = z
  .string()
  .regex(/^-?[0-9]+(\.[0-9]+)?$/)
  .describe("BRL cents, an exact decimal; of credits it is negative.");
const kind = z.enum(costKinds);
const kindAmount = z.object({ kind, amount });
const kindSum = kindAmount.extend({ charges: z.int().min(0).describe("How many they are.") });
const day = z.object({
  day: z.string().describe("In UTC."),
  amount: amount.describe("The sum of `kinds`."),
  kinds: z.array(kindAmount),
});
const forecast = z
  .object({ amount: amount.describe("The sum of `kinds`."), kinds: z.array(kindAmount) })
  .nullable()
  .describe("What the cycle will have cost at its end if nothing changes; null of a cycle that has ended.");

const costShape = {
  currency: z.literal("brl"),
  cycle_started_at: z.string().describe("First moment of the billing cycle, a calendar month in UTC."),
  next_reset_at: z.string().describe("First moment of the next one."),
  plans_metered: z
    .boolean()
    .describe(
      "Whether plans of applications, workers and databases are charged. If not, runs and storage of jobs alone are.",
    ),
  amount: amount.describe(
    "What was charged until now: the sum of `kinds`, of `days`, and of all pages of `projects`.",
  ),
  kinds: z.array(kindSum),
};

const projectEntry = z.object({
  project_id: z.string(),
  name: z.string().nullable().describe("Of a deleted project its last one; null where that is not known."),
  deleted: z.boolean(),
  amount: amount.describe("The sum of `kinds`."),
  kinds: z.array(kindSum),
});

export const usageSchema = z.object({
  ...costShape,
  days: z.array(day).describe("Days with charges."),
  projects: z.array(projectEntry).describe("One page, the dearest first."),
  pagination: runPagination,
  forecast,
});

export const projectCostSchema = z.object({
  project_id: z.string(),
  name: z.string(),
  ...costShape,
  amount: amount.describe("What was charged until now: the sum of `kinds`, and of `days`."),
  days: z
    .array(day)
    .nullable()
    .describe("Days with charges; null where charges of the cycle were deleted, which are kept for 90 days."),
  forecast,
});

export interface CostContext {
  cycle: BillingCycle;
  /** Undefined of a cycle that has ended. */
  now: Date | undefined;
  plansMetered: boolean;
}

const sum = (amounts: readonly CostAmount[]): string => sumDecimals(amounts.map((each) => each.amount));

function common(kinds: readonly CostSum[], { cycle, plansMetered }: CostContext) {
  return {
    currency: "brl" as const,
    ...cycleView(cycle),
    plans_metered: plansMetered,
    amount: sum(kinds),
    kinds: [...kinds],
  };
}

/** @param nameOf the name of a project that exists */
export function usageView(
  cost: OrganizationCost,
  {
    page,
    limit,
    nameOf,
    ...context
  }: CostContext & { page: number; limit: number; nameOf: (projectId: string) => string | undefined },
): z.output<typeof usageSchema> {
  const { total } = cost;
  return {
    ...common(cost.kinds, context),
    days: daysView(cost.days, context.cycle),
    projects: cost.projects.map((project) => projectView(project, nameOf(project.projectId))),
    pagination: { page, limit, total, total_pages: Math.ceil(total / limit) },
    forecast: forecastView(cost, context),
  };
}

export function projectCostView(
  cost: OneProjectCost,
  { id, name, ...context }: CostContext & { id: string; name: string },
): z.output<typeof projectCostSchema> {
  return {
    project_id: id,
    name,
    ...common(cost.kinds, context),
    days: cost.hasDays ? daysView(cost.days, context.cycle) : null,
    forecast: forecastView(cost, context),
  };
}

function projectView({ projectId, deletedName, amount: charged, kinds }: ProjectCost, name?: string) {
  return {
    project_id: projectId,
    name: name ?? deletedName ?? null,
    deleted: name === undefined,
    amount: charged,
    kinds,
  };
}

/** Those of the cycle: a forecast reads days before it, too. */
function daysView(days: readonly CostOfDay[], { startedAt }: BillingCycle) {
  const first = startedAt.toISOString().slice(0, 10);
  const own = days.filter((each) => each.day >= first);
  return [...Map.groupBy(own, (each) => each.day)].map(([name, kinds]) => ({
    day: name,
    amount: sum(kinds),
    kinds: kinds.map((each) => ({ kind: each.kind, amount: each.amount })),
  }));
}

function forecastView(
  {
    days,
    adjustments,
    renewing,
    prices,
  }: Pick<OrganizationCost, "days" | "adjustments" | "renewing" | "prices">,
  { cycle, now, plansMetered }: CostContext,
): CostForecast | null {
  if (now === undefined) {
    return null;
  }
  // A plan that is not in the prices yet has none.
  const hasPrice = (plan: string) => prices.some(({ plans }) => Object.hasOwn(plans, plan));
  const renewals = renewing
    .filter(({ plan }) => hasPrice(plan))
    .map(({ plan, paymentMode, count }) => ({
      price: formatDecimal(parseDecimal(planPrices(prices, plan, now.getTime())[paymentMode])),
      count,
    }));
  return forecastCost(days, { cycle, now, plansMetered, renewals, adjustments });
}
