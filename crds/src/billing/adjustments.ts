/** What is charged or given as credit after a change that was recorded late: docs/billing.md#late-changes. */

import { type Decimal, formatDecimal, parseDecimal } from "../billing.ts";
import type { PlanCharge, PlanChargeKind } from "./plan-charges.ts";

/** A charge that is recorded: of a fact, or a difference to what was recorded of it before. */
export interface RecordedPlanCharge extends PlanCharge {
  /** Key of the fact that it corrects; undefined where it is the fact's own. */
  readonly adjusts?: string | undefined;
}

/** The difference that a late change makes to one fact. */
export interface PlanAdjustment extends PlanCharge {
  readonly adjusts: string;
}

/**
 * The differences between what facts cost and what was recorded of them, one for each fact that differs.
 * @param wanted the charges of a time, computed from the history with the late change
 * @param recorded all that is recorded of facts of that time, oldest first
 * @param pass number of the comparison in the project's history: each has keys of its own
 */
export function planAdjustments(
  wanted: readonly PlanCharge[],
  recorded: readonly RecordedPlanCharge[],
  pass: number,
): PlanAdjustment[] {
  const nets = new Map<string, { net: Decimal; charge: PlanCharge }>();
  const add = (fact: string, charge: PlanCharge, amount: Decimal) => {
    const { net, charge: first } = nets.get(fact) ?? { net: { units: 0n, scale: 0 }, charge };
    nets.set(fact, { net: sum(net, amount), charge: first });
  };
  for (const charge of wanted) {
    add(charge.key, charge, signed(charge));
  }
  for (const charge of recorded) {
    const { units, scale } = signed(charge);
    add(charge.adjusts ?? charge.key, charge, { units: -units, scale });
  }
  return [...nets].flatMap(([fact, { net, charge }]) => {
    const { units, scale } = net;
    if (units === 0n) {
      return [];
    }
    const kind = units < 0n ? "credit" : chargingKind(fact);
    const [uid, ...rest] = fact.split("/");
    const key = [uid, kind, "late", pass, ...rest].join("/");
    const amount = formatDecimal({ units: units < 0n ? -units : units, scale });
    const { adjusts: _, ...facts } = charge as RecordedPlanCharge;
    return [{ ...facts, key, kind, adjusts: fact, amount }];
  });
}

/** The kind of a fact, as its key has it; of less credit the term's, which is paid by so much again. */
function chargingKind(fact: string): PlanChargeKind {
  const kind = fact.split("/")[1] as PlanChargeKind;
  return kind === "credit" ? "term" : kind;
}

function signed({ kind, amount }: PlanCharge): Decimal {
  const { units, scale } = parseDecimal(amount);
  return { units: kind === "credit" ? -units : units, scale };
}

function sum(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale);
  const scaled = ({ units, scale: own }: Decimal) => units * 10n ** BigInt(scale - own);
  return { units: scaled(a) + scaled(b), scale };
}
