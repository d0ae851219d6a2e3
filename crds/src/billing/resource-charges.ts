/** What a project costs by what it uses beside its plan: pure functions of recorded facts and of prices by date. docs/billing.md has the rules. */

import { formatDecimal, parseDecimal, timesDecimal } from "../billing.ts";
import { type PriceList, type ResourcePrice, resourcePrice } from "./prices.ts";

export const resourceChargeKinds = ["build_minute"] as const;
export type ResourceChargeKind = (typeof resourceChargeKinds)[number];

/** One fact and what it costs. Instants are milliseconds, money is BRL cents as a plain decimal. */
export interface ResourceCharge {
  /** Follows from the fact: computed again it is the same. */
  readonly key: string;
  readonly kind: ResourceChargeKind;
  /** It belongs to the cycle of this instant, and has its price. */
  readonly from: number;
  readonly to: number;
  /** From when on nothing can alter it. */
  readonly finalAt: number;
  /** Minutes, a plain decimal. */
  readonly quantity: string;
  readonly price: string;
  /** Exactly the quantity times the price. */
  readonly amount: string;
}

/** A build that has ended, and whose containers ran. */
export interface EndedBuild {
  readonly projectUid: string;
  readonly buildId: string;
  /** When they ran, in the attempt that ended it, in milliseconds. */
  readonly ranFrom: number;
  readonly ranUntil: number;
  /** Of one that failed. */
  readonly errorCode?: string | undefined;
}

/** Failures of the platform itself. */
export const platformBuildFailures = ["BUILD_ENGINE_FAILED", "PROJECT_PUBLISH_FAILED"] as const;

const MINUTE_MS = 60_000;
/** Most minutes of a build: longer than a deadline can be, so that a clock that was set charges no more. */
const MAX_BUILD_MINUTES = 1_440;

/** The charge of a build; undefined of one that costs nothing. */
export function buildCharge(
  { projectUid, buildId, ranFrom: from, ranUntil, errorCode = "" }: EndedBuild,
  lists: readonly PriceList[],
): ResourceCharge | undefined {
  if ((platformBuildFailures as readonly string[]).includes(errorCode)) {
    return undefined;
  }
  const minutes = Math.min(Math.max(Math.ceil((ranUntil - from) / MINUTE_MS), 1), MAX_BUILD_MINUTES);
  const to = from + minutes * MINUTE_MS;
  const finalAt = Math.min(Math.max(from, ranUntil), to);
  const key = `${projectUid}/build_minute/${buildId}`;
  return chargeOf(
    { kind: "build_minute", key, from, to, finalAt },
    { quantity: `${minutes}`, lists, name: "buildMinute" },
  );
}

function chargeOf(
  fact: Omit<ResourceCharge, "quantity" | "price" | "amount">,
  { quantity, lists, name }: { quantity: string; lists: readonly PriceList[]; name: ResourcePrice },
): ResourceCharge | undefined {
  const price = resourcePrice(lists, name, fact.from);
  const { units, scale } = parseDecimal(quantity);
  const product = timesDecimal(parseDecimal(price), units);
  const amount = formatDecimal({ ...product, scale: product.scale + scale });
  return amount === "0" ? undefined : { ...fact, quantity, price, amount };
}
