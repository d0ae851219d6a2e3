import type { PriceList } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import type { BillingFinding } from "./findings.ts";
import { type AuditedChange, auditHistory, type Meter, type Metered } from "./histories.ts";
import { auditPart } from "./parts.ts";
import { compareProject, rangesOf } from "./project-facts.ts";
import { countCharges, readFacts, readMonth } from "./recorded-charges.ts";
import type { AuditScope } from "./scope.ts";

/** Audits charges of plans: recomputed from the recorded history of each project, and compared fact by fact. */

/** Projects that are read together, about how many changes of them, and about how many charges of a month. */
const PROJECTS = 20;
const CHANGES = 20_000;
const CHARGES = 20_000;
/** Changes of a history that are read: as the meter reads them of an hour. */
const MOST_CHANGES = 100_000;

/** How long ago some project was metered last where projects are metered, by an operator that was not away. */
const METERED = sql`interval '1 day'`;

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
        deleted, ended, arrivals, late_from, late_since, adjustments,
        late_from is not null and (select max(metered_until) from plan_meters) > now() - ${METERED} as is_due
      from plan_meters
      where project_uid > ${after} and organization_id = ${scope.organizationId}
      order by project_uid limit ${PROJECTS}`.execute(ledger);
    for (const some of partsOf(meters, ({ arrivals }) => Number(arrivals), CHANGES)) {
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

/** Parts that have no more together than are wanted, unless it is one alone. */
function partsOf<T>(all: readonly T[], sizeOf: (one: T) => number, most: number): T[][] {
  const parts: T[][] = [];
  let left = 0;
  for (const one of all) {
    const size = sizeOf(one);
    if (parts.length === 0 || size > left) {
      parts.push([]);
      left = most;
    }
    parts.at(-1)?.push(one);
    left -= size;
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

async function auditProjects(ledger: Ledger, projects: Projects, report: Report): Promise<number> {
  const { scope } = projects;
  const { organizationId, timeouts } = scope;
  const [steady, adjusted] = await chargeableProjects(ledger, projects, report);
  let compared = 0;
  for (const project of adjusted) {
    const key = project.meter.project_uid;
    await auditPart(ledger, { organizationId, key, timeouts }, report, async () => {
      compared += await auditAdjusted(ledger, { ...projects, project }, report);
    });
  }
  const counts = await countCharges(ledger, scope, steady);
  for (const month of scope.cycles) {
    const countOf = ({ meter }: Metered) => counts.get(`${meter.project_id}/${month}`) ?? 0;
    for (const some of partsOf(steady, countOf, CHARGES)) {
      const key = `plan_charges of ${month}, ${some[0]?.meter.project_uid} and ${some.length - 1} more`;
      await auditPart(ledger, { organizationId, key, timeouts }, report, async () => {
        const recorded = await readMonth(ledger, organizationId, month, some);
        for (const project of some) {
          const own = recorded.get(project.meter.project_uid) ?? [];
          compared += own.length;
          compareProject({ ...projects, project, recorded: own, window: { month } }, report);
        }
      });
    }
  }
  return compared;
}

/** Projects whose charges can be computed: those that never had a late change, and those that had. */
async function chargeableProjects(
  ledger: Ledger,
  { scope, meters }: Projects,
  report: Report,
): Promise<[steady: Metered[], adjusted: Metered[]]> {
  const { organizationId, now } = scope;
  const uids = meters.map(({ project_uid }) => project_uid);
  const { rows } = await sql<AuditedChange>`
    select * from billable_changes where project_uid = any (${uids}::text[]) order by project_uid, number
    limit ${MOST_CHANGES + 1}`.execute(ledger);
  if (rows.length > MOST_CHANGES) {
    report({
      code: "AUDIT_INCOMPLETE",
      organizationId,
      key: uids.join(", "),
      found: `more than ${MOST_CHANGES} changes`,
    });
    return [[], []];
  }
  const changes = Map.groupBy(rows, ({ project_uid }) => project_uid);
  const steady: Metered[] = [];
  const adjusted: Metered[] = [];
  for (const meter of meters) {
    const own = changes.get(meter.project_uid) ?? [];
    const { isChargeable, found } = auditHistory(meter, own, now);
    for (const finding of found) {
      report({ organizationId, ...finding });
    }
    const isAdjusted = meter.adjustments > 0 || meter.late_from !== null || own.some(({ late }) => late);
    if (isChargeable) {
      (isAdjusted ? adjusted : steady).push({ meter, changes: own });
    }
  }
  return [steady, adjusted];
}

/** A fact's charge and what adjusts it may be of different months: they are read together, some hours at a time. */
async function auditAdjusted(
  ledger: Ledger,
  { scope, lists, project }: Omit<Projects, "meters"> & { project: Metered },
  report: Report,
): Promise<number> {
  let compared = 0;
  for (const range of rangesOf(project, scope.now)) {
    const recorded = await readFacts(ledger, project.meter, range);
    compared += recorded.filter(({ cycle }) => cycle >= scope.from && cycle < scope.to).length;
    compareProject({ scope, lists, project, recorded, window: { range } }, report);
  }
  return compared;
}

/** Charges that belong to no project of the organization: read only where there are others than were compared. */
async function auditStrays(
  ledger: Ledger,
  scope: AuditScope,
  compared: number,
  report: Report,
): Promise<void> {
  const inScope = sql`organization_id = ${scope.organizationId} and cycle_start >= ${scope.from}::date
    and cycle_start < ${scope.to}::date and quantity is null`;
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
