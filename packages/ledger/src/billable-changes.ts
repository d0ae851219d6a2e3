import type { BillableChange, BillableHistory, BillableState } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";

/** What projects have that is billed, and from when on: docs/billing.md#what-is-recorded. */

export interface BillableProject {
  organizationId: string;
  projectId: string;
  projectUid: string;
}

/** One change of a project. */
export interface NumberedChange {
  /** Place in the project's history, from 1 up; with the project's uid it is the key. */
  number: number;
  at: Date;
  /** What it has from then on; undefined when it was deleted. */
  state: BillableState | undefined;
}

export interface BillableChangeRow extends BillableProject, NumberedChange {}

export interface RecordedBillableChange {
  projectUid: string;
  number: number;
  /**
   * `late`: recorded, after charges of its time, which are to be adjusted; `differs`: the ledger has another change of that number, as after a cluster went back to an earlier state; `ahead`: it is later than the
   * ledger's own time, and to be sent again.
   */
  outcome: "recorded" | "late" | "already" | "differs" | "ahead";
}

/** Most changes of one transaction. */
const MAX_BATCH = 500;

/** A row of `billable_changes`. */
export interface ChangeRow {
  organization_id: string;
  project_id: string;
  project_uid: string;
  number: number;
  at: Date;
  deleted: boolean;
  plan: string | null;
  payment_mode: BillableState["paymentMode"] | null;
  renews: boolean | null;
  instances: number | null;
  paused: boolean | null;
  billed_gb: number | null;
}

/**
 * Writes changes. Existing ones stay as they are, so that a batch whose answer was lost is sent again.
 * @returns an outcome for every change, in their order
 * @throws when the database is away or the answer was lost, or when a change breaks a rule of the ledger: nothing of its batch of 500 is recorded then
 */
export async function recordBillableChanges(
  ledger: Ledger,
  changes: readonly BillableChangeRow[],
): Promise<RecordedBillableChange[]> {
  const results: RecordedBillableChange[] = [];
  for (let start = 0; start < changes.length; start += MAX_BATCH) {
    const batch = changes.slice(start, start + MAX_BATCH);
    const transaction = ledger.transaction().setIsolationLevel("read committed");
    results.push(...(await transaction.execute((connection) => recordBatch(connection, batch))));
  }
  return results;
}

async function recordBatch(
  ledger: Ledger,
  changes: readonly BillableChangeRow[],
): Promise<RecordedBillableChange[]> {
  const given = JSON.stringify(changes.map(rowOf));
  const { rows: inserted } = await sql<Pick<ChangeRow, "project_uid" | "number"> & { late: boolean }>`
    insert into billable_changes (organization_id, project_id, project_uid, number, at, deleted, plan, payment_mode, renews,
      instances, paused, billed_gb)
    select organization_id, project_id, project_uid, number, at, deleted, plan, payment_mode, renews, instances, paused, billed_gb
    from json_populate_recordset(null::billable_changes, ${given})
    where at <= clock_timestamp() + interval '1 minute'
    order by project_uid, number
    on conflict do nothing
    returning project_uid, number, late`.execute(ledger);
  const isNew = new Map(
    inserted.map((row) => [keyOf(row), row.late ? ("late" as const) : ("recorded" as const)]),
  );
  const { rows: found } = await sql<ChangeRow>`
    select c.* from json_populate_recordset(null::billable_changes, ${given}) g
    join billable_changes c using (project_uid, number)`.execute(ledger);
  const there = new Map(found.map((row) => [keyOf(row), row]));
  return changes.map((change) => {
    const { projectUid, number } = change;
    const row = there.get(keyOf({ project_uid: projectUid, number }));
    if (row === undefined) {
      return { projectUid, number, outcome: "ahead" };
    }
    if (JSON.stringify(rowOf(changeOf(row))) !== JSON.stringify(rowOf(change))) {
      return { projectUid, number, outcome: "differs" };
    }
    const outcome = isNew.get(keyOf(row)) ?? "already";
    isNew.delete(keyOf(row));
    return { projectUid, number, outcome };
  });
}

/** The last change of each of some projects that have one. By uid. */
export async function lastBillableChanges(
  ledger: Ledger,
  projectUids: readonly string[],
): Promise<Map<string, NumberedChange>> {
  const { rows } = await sql<ChangeRow>`
    select c.* from unnest(${projectUids}::text[]) as uid
    cross join lateral (select * from billable_changes where project_uid = uid order by number desc limit 1) c`.execute(
    ledger,
  );
  return new Map(rows.map((row) => [row.project_uid, changeOf(row)]));
}

/** A history without an end. */
export interface OpenHistory extends BillableProject {
  /** Up to when its charges are recorded; undefined: none are yet. */
  meteredUntil: Date | undefined;
}

/** Projects that have begun and whose end is not recorded. */
export async function openBillableProjects(ledger: Ledger): Promise<OpenHistory[]> {
  const { rows } = await sql<
    Pick<ChangeRow, "organization_id" | "project_id" | "project_uid"> & { metered_until: Date | null }
  >`
    select organization_id, project_id, project_uid, metered_until from plan_meters where not deleted
    order by project_uid`.execute(ledger);
  return rows.map((row) => ({ ...projectOf(row), meteredUntil: row.metered_until ?? undefined }));
}

/** Changes of some projects from a number on, by project and number. */
export async function listBillableChanges(
  ledger: Ledger,
  projects: readonly { projectUid: string; from: number }[],
): Promise<BillableChangeRow[]> {
  const given = JSON.stringify(
    projects.map(({ projectUid, from }) => ({ project_uid: projectUid, number: from })),
  );
  const { rows } = await sql<ChangeRow>`
    select c.* from json_populate_recordset(null::billable_changes, ${given}) g
    join billable_changes c on c.project_uid = g.project_uid and c.number >= g.number
    order by c.project_uid, c.number`.execute(ledger);
  return rows.map(changeOf);
}

/** All that is recorded of some projects. */
export async function billableHistories(
  ledger: Ledger,
  projectUids: readonly string[],
): Promise<BillableHistory[]> {
  const { rows } = await sql<ChangeRow>`
    select * from billable_changes where project_uid = any (${projectUids}::text[]) order by project_uid, number`.execute(
    ledger,
  );
  return [...Map.groupBy(rows, ({ project_uid }) => project_uid)].map(([projectUid, own]) =>
    historyOf(projectUid, own),
  );
}

/** @internal The history of a project whose changes are given in order. */
export function historyOf(projectUid: string, rows: readonly ChangeRow[]): BillableHistory {
  const changes: BillableChange[] = [];
  let deletedAt: number | undefined;
  for (const row of rows) {
    const { at, state } = changeOf(row);
    if (state === undefined) {
      deletedAt = at.getTime();
    } else {
      changes.push({ ...state, at: at.getTime() });
    }
  }
  return { projectUid, changes, ...(deletedAt === undefined ? {} : { deletedAt }) };
}

const keyOf = ({ project_uid, number }: Pick<ChangeRow, "project_uid" | "number">) =>
  `${project_uid}/${number}`;

const projectOf = (
  row: Pick<ChangeRow, "organization_id" | "project_id" | "project_uid">,
): BillableProject => ({
  organizationId: row.organization_id,
  projectId: row.project_id,
  projectUid: row.project_uid,
});

function rowOf({ organizationId, projectId, projectUid, number, at, state }: BillableChangeRow): ChangeRow {
  return {
    organization_id: organizationId,
    project_id: projectId,
    project_uid: projectUid,
    number,
    at,
    deleted: state === undefined,
    plan: state?.plan ?? null,
    payment_mode: state?.paymentMode ?? null,
    renews: state?.renews ?? null,
    instances: state?.instances ?? null,
    paused: state?.paused ?? null,
    billed_gb: state?.billedGb ?? null,
  };
}

/** @internal */
export function changeOf(row: ChangeRow): BillableChangeRow {
  const { plan, payment_mode, renews, instances, paused, billed_gb } = row;
  const isState =
    plan !== null &&
    payment_mode !== null &&
    renews !== null &&
    instances !== null &&
    paused !== null &&
    billed_gb !== null;
  return {
    ...projectOf(row),
    number: row.number,
    at: row.at,
    state: isState
      ? { plan, paymentMode: payment_mode, renews, instances, paused, billedGb: billed_gb }
      : undefined,
  };
}
