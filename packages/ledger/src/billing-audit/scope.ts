import { billingCycle } from "@slipway/crds";

/** What of an organization is audited: whole billing cycles. Days are dates in UTC. */
export interface AuditScope {
  organizationId: string;
  /** First day of the first cycle. */
  from: string;
  /** First day after the last one. */
  to: string;
  /** First days of all of them. */
  cycles: readonly string[];
  /** The ledger's time. */
  now: Date;
  /** How often the ledger took too long for a part of it. */
  timeouts: { count: number };
}

/** The scope from one cycle's first day to another one's, which is not in it. */
export function scopeOf(
  organizationId: string,
  { from, to, now, timeouts }: Pick<AuditScope, "from" | "to" | "now" | "timeouts">,
): AuditScope {
  const cycles: string[] = [];
  for (let cycle = from; cycle < to; cycle = nextCycle(cycle)) {
    cycles.push(cycle);
  }
  return { organizationId, from, to, cycles, now, timeouts };
}

/** The date of an instant, in UTC. */
export const dayOf = (at: Date): string => at.toISOString().slice(0, 10);

/** The first day of the cycle after the one that a day lies in. */
export const nextCycle = (day: string): string => dayOf(billingCycle(new Date(day)).nextResetAt);

/** Cycles that follow each other. `to` is not in it. */
export interface Span {
  from: string;
  to: string;
}

/** Cycles in spans of no more charges than so many together, unless they are one cycle's. */
export function spansOf(
  cycles: readonly string[],
  charges: ReadonlyMap<string, number>,
  most: number,
): Span[] {
  const spans: Span[] = [];
  let left = 0;
  for (const from of cycles) {
    const own = charges.get(from) ?? 0;
    const to = nextCycle(from);
    const last = spans.at(-1);
    if (last === undefined || own > left) {
      spans.push({ from, to });
      left = most - own;
    } else {
      last.to = to;
      left -= own;
    }
  }
  return spans;
}
