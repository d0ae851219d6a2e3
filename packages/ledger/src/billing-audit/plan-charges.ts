import { type BillableHistory, type PlanCharge, type PriceList, planCharges } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import { type AuditedCharge, compareFacts, isSameCharge } from "./facts.ts";
import type { BillingFinding } from "./findings.ts";
import { type AuditedChange, auditHistory, historiesOf, type Meter, type Metered } from "./histories.ts";
import { readMonth, readProject } from "./recorded-charges.ts";
import { type AuditScope, nextCycle } from "./scope.ts";

/** Audits charges of plans: recomputed from the recorded history of each project, and compared fact by fact. */

/** Projects that are read together, and about how many changes of them. */
const PROJECTS = 20;
const CHANGES = 20_000;
const HOUR_MS = 3_600_000;

type Report = (finding: BillingFinding) => void;

/** @returns how many rows were compared */
export async function auditPlanCharges(
  ledger: Ledger,
  scope: AuditScope,
  lists: readonly PriceList[],
  report: Report,
): Promise<number> {
  let compared = 0;
  let after = "";
  for (;;) {
    const { rows: meters } = await sql<Meter>`
      select organization_id, project_id, project_uid, (extract(epoch from metered_until) * 1000)::float8 as metered_until,
        deleted, arrivals, late_from, late_since, adjustments
      from plan_meters
      where project_uid > ${after} and organization_id = ${scope.organizationId}
      order by project_uid limit ${PROJECTS}`.execute(ledger);
    for (const some of partsOf(meters)) {
      compared += await auditProjects(ledger, { scope, lists, meters: some }, report);
    }
    const last = meters.at(-1);
    if (last === undefined || meters.length < PROJECTS) {
      break;
    }
    after = last.project_uid;
  }
  await auditStrays(ledger, scope, compared, report);
  await auditUnmetered(ledger, scope, report);
  return compared;
}

/** Projects that have no more changes together than are read together, unless it is one alone. */
function partsOf(meters: readonly Meter[]): Meter[][] {
  const parts: Meter[][] = [];
  let left = 0;
  for (const meter of meters) {
    const changes = Number(meter.arrivals);
    if (parts.length === 0 || changes > left) {
      parts.push([]);
      left = CHANGES;
    }
    parts.at(-1)?.push(meter);
    left -= changes;
  }
  return parts;
}

/** Histories of which nothing says up to when they are charged. */
async function auditUnmetered(ledger: Ledger, { organizationId }: AuditScope, report: Report): Promise<void> {
  const { rows } = await sql<{ key: string }>`
    select distinct project_uid as key from billable_changes c where organization_id = ${organizationId}
      and not exists (select from plan_meters m where m.project_uid = c.project_uid) limit 1000`.execute(
    ledger,
  );
  for (const { key } of rows) {
    report({ code: "CHANGE_DIFFERS", organizationId, key, expected: "a row of plan_meters", found: "none" });
  }
}

interface Projects {
  scope: AuditScope;
  lists: readonly PriceList[];
  meters: readonly Meter[];
}

async function auditProjects(
  ledger: Ledger,
  { scope, lists, meters }: Projects,
  report: Report,
): Promise<number> {
  const uids = meters.map(({ project_uid }) => project_uid);
  const { rows } = await sql<AuditedChange>`
    select * from billable_changes where project_uid = any (${uids}::text[]) order by project_uid, number`.execute(
    ledger,
  );
  const changes = Map.groupBy(rows, ({ project_uid }) => project_uid);
  const steady: Metered[] = [];
  let compared = 0;
  for (const meter of meters) {
    const own = changes.get(meter.project_uid) ?? [];
    const { isChargeable, found } = auditHistory(meter, own, scope.now);
    for (const finding of found) {
      report({ organizationId: scope.organizationId, ...finding });
    }
    if (!isChargeable) {
      continue;
    }
    const project = { meter, changes: own };
    const isAdjusted = meter.adjustments > 0 || meter.late_from !== null || own.some(({ late }) => late);
    if (!isAdjusted) {
      steady.push(project);
      continue;
    }
    const recorded = await readProject(ledger, meter);
    compared += recorded.filter(({ cycle }) => cycle >= scope.from && cycle < scope.to).length;
    compare({ scope, lists, project, recorded }, report);
  }
  for (const month of scope.cycles) {
    const recorded = await readMonth(ledger, scope.organizationId, month, steady);
    for (const project of steady) {
      const own = recorded.get(project.meter.project_uid) ?? [];
      compared += own.length;
      compare({ scope, lists, project, recorded: own, month }, report);
    }
  }
  return compared;
}

interface Compared {
  scope: AuditScope;
  lists: readonly PriceList[];
  project: Metered;
  recorded: readonly AuditedCharge[];
  /** First day of the month whose facts are compared; all of the scope's unless given. */
  month?: string;
}

function compare(compared: Compared, report: Report): void {
  const { scope, project, recorded, month } = compared;
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
    const key = meter.project_uid;
    report({
      code: "HISTORY_INVALID",
      organizationId: scope.organizationId,
      key,
      found: error instanceof Error ? error.message : "an error",
    });
    return;
  }
  const isWithin = within(scope.from, scope.to);
  const byKey = new Map(recorded.map((row) => [row.key, row]));
  for (const finding of found) {
    const charge = byKey.get(finding.key) ?? facts.wanted.get(finding.key);
    if (month !== undefined || charge === undefined || isWithin(charge)) {
      report({ organizationId: scope.organizationId, ...finding });
    }
  }
}

interface Facts {
  wanted: ReadonlyMap<string, PlanCharge>;
  earlier: ReadonlyMap<string, readonly PlanCharge[]>;
  isPartial: boolean;
}

/** What a history costs, and what it cost before each late change where that was something else. @throws Error when it cannot be charged */
function factsOf({ lists, project: { meter, changes }, month }: Compared): Facts {
  const until = meter.metered_until ?? Number.NEGATIVE_INFINITY;
  const isWithin = month === undefined ? () => true : within(month, nextCycle(month));
  // All of the month's hours are whole then.
  const window =
    month === undefined
      ? { until }
      : { hoursSince: Date.parse(month), until: Math.min(until, Date.parse(nextCycle(month)) + HOUR_MS) };
  const final = (history: BillableHistory) =>
    planCharges(history, lists, { ...window, since: Number.NEGATIVE_INFINITY }).filter(
      (charge) => charge.finalAt < until && isWithin(charge),
    );
  const { current, before, isPartial } = historiesOf(meter.project_uid, changes);
  const wanted = new Map(final(current).map((charge) => [charge.key, charge]));
  const earlier = new Map<string, PlanCharge[]>();
  for (const history of before) {
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

function within(from: string, to: string): (charge: PlanCharge) => boolean {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  return (charge) => charge.from >= start && charge.from < end;
}

/** Charges that belong to no project of the organization: read only where there are others than were compared. */
async function auditStrays(
  ledger: Ledger,
  scope: AuditScope,
  compared: number,
  report: Report,
): Promise<void> {
  const inScope = sql`organization_id = ${scope.organizationId} and cycle_start >= ${scope.from}::date
    and cycle_start < ${scope.to}::date`;
  const { rows: counted } = await sql<{ count: string }>`
    select count(*) as count from plan_charges where ${inScope}`.execute(ledger);
  if (Number(counted[0]?.count) === compared) {
    return;
  }
  const { rows } = await sql<{ key: string; found: string }>`
    select key, concat(organization_id, '/', project_id, '/', project_uid, ', amount ', trim_scale(amount)) as found
    from plan_charges p where ${inScope} and (not exists (select from plan_meters m
        where (m.organization_id, m.project_id, m.project_uid) = (p.organization_id, p.project_id, p.project_uid))
      or not starts_with(key, project_uid || '/'))
    order by key limit 1000`.execute(ledger);
  for (const row of rows) {
    report({ code: "CHARGE_UNEXPECTED", organizationId: scope.organizationId, ...row });
  }
}
