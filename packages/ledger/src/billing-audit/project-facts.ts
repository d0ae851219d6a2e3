/** What a project's history costs, compared with what is recorded: of a month, or of some hours of it. */

import { type BillableHistory, type PlanCharge, type PriceList, planCharges } from "@slipway/crds";
import { type AuditedCharge, compareFacts, isSameCharge } from "./facts.ts";
import type { BillingFinding } from "./findings.ts";
import { historiesOf, type Metered } from "./histories.ts";
import { type FactRange, MOST_HOURS } from "./recorded-charges.ts";
import { type AuditScope, nextCycle } from "./scope.ts";

const HOUR_MS = 3_600_000;
/** About how many facts of a project are compared at a time, in all states of its history. */
const FACTS = 50_000;
/** States in which hours cost something else, about: most are as they were. */
const STATES = 20;
const LEAST_HOURS = 24;

export interface ComparedProject {
  scope: AuditScope;
  lists: readonly PriceList[];
  project: Metered;
  /** All that is recorded of the window. */
  recorded: readonly AuditedCharge[];
  /** A month by its first day, of a project without late changes; or facts of any month, of which those of the scope are reported. */
  window: { month: string } | { range: FactRange };
}

/** The facts of a project in parts, of which each has all states of its facts. */
export function rangesOf({ meter, changes }: Metered, now: Date): FactRange[] {
  const instances = changes.reduce((most, { instances: own }) => Math.max(most, own ?? 0), 0);
  const states = changes.reduce((count, { late }) => count + (late ? 1 : 0), 1);
  const step = Math.max(LEAST_HOURS, Math.floor(FACTS / ((instances + 1) * Math.min(states, STATES))));
  const until = untilOf(meter, now);
  const begun = changes.reduce((first, { at }) => Math.min(first, at.getTime()), until);
  // Of a project that is charged up to no time nothing is to be recorded.
  const last = until > begun ? Math.ceil((until - begun) / HOUR_MS) : 0;
  const ranges: FactRange[] = ["terms"];
  for (let from = 0; from <= last; from += step) {
    // What is recorded beyond is of no hour that there was.
    ranges.push({ from, to: from + step > last ? MOST_HOURS : from + step });
  }
  return ranges;
}

/** Up to when a project is charged, which is not in the future. */
const untilOf = ({ metered_until }: Metered["meter"], now: Date): number =>
  Math.min(metered_until ?? Number.NEGATIVE_INFINITY, now.getTime() + HOUR_MS);

/** Reports what differs. */
export function compareProject(compared: ComparedProject, report: (finding: BillingFinding) => void): void {
  const { scope, project, recorded, window } = compared;
  const { organizationId } = scope;
  const { meter } = project;
  let facts: Facts;
  let found: ReturnType<typeof compareFacts>;
  try {
    facts = factsOf(compared);
    found = compareFacts({
      ...facts,
      projectUid: meter.project_uid,
      recorded,
      passes: meter.adjustments,
      isPending: meter.late_from !== null,
    });
  } catch (error) {
    // Of a row that nothing can be computed from, as with an amount that is no number.
    const what = error instanceof Error ? error.message : "an error";
    report({ code: "HISTORY_INVALID", organizationId, key: meter.project_uid, found: what });
    return;
  }
  const isWithin = within(scope.from, scope.to);
  const byKey = new Map(recorded.map((row) => [row.key, row]));
  for (const finding of found) {
    const charge = byKey.get(finding.key) ?? facts.wanted.get(finding.key);
    if ("month" in window || charge === undefined || isWithin(charge)) {
      report({ organizationId, ...finding });
    }
  }
}

interface Facts {
  wanted: ReadonlyMap<string, PlanCharge>;
  earlier: ReadonlyMap<string, readonly PlanCharge[]>;
  isPartial: boolean;
}

/** What a history costs, and what it cost before each late change where that was something else. @throws Error when it cannot be charged */
function factsOf({ scope, lists, project: { meter, changes }, window }: ComparedProject): Facts {
  const until = untilOf(meter, scope.now);
  const final = (history: BillableHistory) => {
    const { hoursSince, end, isWanted } =
      "month" in window ? ofMonth(window.month) : ofRange(window.range, history);
    return planCharges(history, lists, {
      since: Number.NEGATIVE_INFINITY,
      hoursSince: Math.min(hoursSince, until),
      until: Math.min(until, end),
    }).filter((charge) => charge.finalAt < until && isWanted(charge));
  };
  const { current, before, isPartial } = historiesOf(meter.project_uid, changes);
  const wanted = new Map(final(current).map((charge) => [charge.key, charge]));
  const earlier = new Map<string, PlanCharge[]>();
  for (const history of before()) {
    for (const charge of final(history)) {
      const last = wanted.get(charge.key);
      const others = earlier.get(charge.key) ?? [];
      const known = last === undefined ? others : [last, ...others];
      if (!known.some((one) => isSameCharge(one, charge))) {
        earlier.set(charge.key, [...others, charge]);
      }
    }
  }
  return { wanted, earlier, isPartial };
}

interface Wanted {
  hoursSince: number;
  /** What the history has from then on changes nothing of it. */
  end: number;
  isWanted: (charge: PlanCharge) => boolean;
}

/** All of the month's hours are whole at its end. */
const ofMonth = (month: string): Wanted => ({
  hoursSince: Date.parse(month),
  end: Date.parse(nextCycle(month)) + HOUR_MS,
  isWanted: within(month, nextCycle(month)),
});

function ofRange(range: FactRange, { changes }: BillableHistory): Wanted {
  const isHour = ({ kind }: PlanCharge) => kind === "instance_hour" || kind === "storage_hour";
  if (range === "terms") {
    const end = Number.POSITIVE_INFINITY;
    return { hoursSince: end, end, isWanted: (charge) => !isHour(charge) };
  }
  const origin = changes[0]?.at ?? 0;
  return {
    hoursSince: origin + range.from * HOUR_MS,
    end: origin + (range.to + 1) * HOUR_MS,
    isWanted: (charge) => {
      const hour = Number(charge.key.split("/")[2]);
      return isHour(charge) && hour >= range.from && hour < range.to;
    },
  };
}

function within(from: string, to: string): (charge: PlanCharge) => boolean {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  return (charge) => charge.from >= start && charge.from < end;
}
