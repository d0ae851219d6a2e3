import type { BillableHistory } from "@slipway/crds";
import { type ChangeRow, historyOf } from "../billable-changes.ts";
import { timeOf } from "./facts.ts";
import type { BillingFinding } from "./findings.ts";

/** Recorded histories, as an audit reads them. */

/** Late changes of a project before each of which its history is computed: of one with more, facts are compared by their sums alone. */
const MAX_STATES = 100;
/** Before these, and of more instances, no history is charged. */
const MOST_YEARS = 10;
const MOST_INSTANCES = 1_000;
const DAY_MS = 86_400_000;
/** How long a project may wait for its adjustment where projects are metered, in milliseconds. */
const PENDING_MS = 86_400_000;

/** Up to when a project is charged, as the audit reads it. */
export interface Meter {
  organization_id: string;
  project_id: string;
  project_uid: string;
  metered_until: number | null;
  deleted: boolean;
  /** It is not metered any more. */
  ended: boolean;
  arrivals: string;
  late_from: Date | null;
  late_since: Date | null;
  /** It waits for its adjustment while projects are metered. */
  is_due: boolean;
  adjustments: number;
}

/** A change with how it came. */
export interface AuditedChange extends ChangeRow {
  late: boolean;
  arrival: string;
  recorded_at: Date;
}

export interface Metered {
  meter: Meter;
  changes: readonly AuditedChange[];
}

type Found = Omit<BillingFinding, "organizationId">;

/** What is wrong with a history itself, and whether charges can be computed from it. Changes are counted as they come. */
export function auditHistory(
  meter: Meter,
  changes: readonly AuditedChange[],
  now: Date,
): { found: Found[]; isChargeable: boolean } {
  const key = meter.project_uid;
  const found: Found[] = [];
  const arrivals = new Set(changes.map(({ arrival }) => Number(arrival)).filter((arrival) => arrival > 0));
  const last = arrivals.values().reduce((most, arrival) => Math.max(most, arrival), 0);
  const counted = Number(meter.arrivals);
  if (arrivals.size !== counted || last !== counted) {
    const came = `${arrivals.size} changes, the last of which came as number ${last}`;
    found.push({ code: "CHANGE_MISSING", key, expected: `${counted} changes`, found: came });
  }
  for (const { organization_id, project_id, number } of changes) {
    if (organization_id !== meter.organization_id || project_id !== meter.project_id) {
      found.push({
        code: "CHANGE_DIFFERS",
        key: `${key}/${number}`,
        expected: `${meter.organization_id}/${meter.project_id}`,
        found: `${organization_id}/${project_id}`,
      });
    }
  }
  const end = changes.some(({ deleted }) => deleted);
  if (end !== meter.deleted) {
    const what = (deleted: boolean) => (deleted ? "an end" : "no end");
    found.push({ code: "CHANGE_DIFFERS", key, expected: what(meter.deleted), found: what(end) });
  }
  const endsAt = changes.reduce((last, { deleted, at }) => (deleted ? Math.max(last, Number(at)) : last), 0);
  if (meter.ended && !(end && (meter.metered_until ?? 0) > endsAt)) {
    const until = end ? `charges up to ${timeOf(endsAt)} and beyond` : "metering, as its history has no end";
    found.push({
      code: "METERING_ENDED",
      key,
      expected: until,
      found: `none after ${meter.metered_until === null ? "its begin" : timeOf(meter.metered_until)}`,
    });
  }
  // What the ledger has not written itself has no `late_since`.
  if (meter.is_due && !(now.getTime() - Number(meter.late_since) < PENDING_MS)) {
    found.push({ code: "ADJUSTMENT_OVERDUE", key, found: `it waits since ${String(meter.late_since)}` });
  }
  const invalid = invalidChange(changes, now);
  if (invalid !== undefined) {
    found.push({ code: "HISTORY_INVALID", key, found: invalid });
  }
  return { found, isChargeable: invalid === undefined };
}

/** A change from which charges of millions of hours would be computed, or none. */
function invalidChange(changes: readonly AuditedChange[], now: Date): string | undefined {
  const earliest = now.getTime() - MOST_YEARS * 366 * DAY_MS;
  for (const { number, at, instances } of changes) {
    // PostgreSQL also has infinite instants, which are no dates.
    const time = at instanceof Date ? at.getTime() : Number.NaN;
    if (!(time >= earliest && time <= now.getTime() + DAY_MS)) {
      return `change ${number} at ${String(at)}`;
    }
    if ((instances ?? 0) > MOST_INSTANCES) {
      return `change ${number} with ${instances} instances`;
    }
  }
  return undefined;
}

export interface Histories {
  current: BillableHistory;
  /** How many there are of `before`. */
  states: number;
  /** As it was before each late change: one at a time, as each is as long as the whole. */
  before: () => Generator<BillableHistory>;
  /** Whether some of these are left out. */
  isPartial: boolean;
}

/** A project's history, and as it was before. */
export function historiesOf(projectUid: string, changes: readonly AuditedChange[]): Histories {
  const late = changes.flatMap(({ late: isLate, arrival }) => (isLate ? [Number(arrival)] : []));
  const arrivals = late.sort((a, b) => a - b).slice(0, MAX_STATES);
  return {
    current: historyOf(projectUid, changes),
    states: arrivals.length,
    before: function* () {
      for (const first of arrivals) {
        yield historyOf(
          projectUid,
          changes.filter(({ arrival }) => Number(arrival) < first),
        );
      }
    },
    isPartial: arrivals.length < late.length,
  };
}
