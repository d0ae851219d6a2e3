import { sql } from "kysely";
import { type AlertKey, type AlertState, alertEvent, type RecordedAlert } from "./alert-events.ts";
import type { Ledger } from "./connect.ts";
import { recordOwnEvents } from "./webhook-events.ts";
import { inTransaction } from "./webhook-locks.ts";

/** States of projects' alerts. Each is written when it changes, together with the event of that change. */

/** A change of one rule's state. */
export interface AlertChange extends AlertKey {
  /** What it was; undefined when nothing was recorded. The change is made only where that is still so. */
  before: Pick<RecordedAlert, "state" | "since"> | undefined;
  /** What it is; undefined when the rule is no more. */
  state: AlertState | undefined;
  threshold: number | null;
  value: number | null;
}

interface Row {
  organization_id: string;
  project_id: string;
  project_uid: string;
  name: string;
  metric: string;
  threshold: number | null;
  state: AlertState;
  since: Date;
  value: number | null;
}

/** All that is recorded. */
export async function listAlertStates(ledger: Ledger): Promise<RecordedAlert[]> {
  const { rows } = await sql<Row>`select * from alert_states order by project_uid, name, metric`.execute(
    ledger,
  );
  return rows.map(recordOf);
}

/** What is recorded of one project's rules. */
export async function alertStatesOf(ledger: Ledger, projectUid: string): Promise<RecordedAlert[]> {
  const { rows } = await sql<Row>`
    select * from alert_states where project_uid = ${projectUid} order by name, metric`.execute(ledger);
  return rows.map(recordOf);
}

/** Changes of one transaction. */
const MAX_BATCH = 200;

/** What was observed longer ago, by the ledger's clock, may no longer be so: a process that was stopped in between goes on with it. */
const OBSERVED_WITHIN_SECONDS = 60;

/**
 * Records changes, each with its event: both, or neither. A change of a rule that another process has changed since is left out, and so are all of what was
 * observed a minute ago or earlier.
 * @param observedAt when that which the changes are made by was begun to be observed
 * @returns the rules that were changed, as they are now; those that are no more are not among them
 */
export async function changeAlertStates(
  ledger: Ledger,
  changes: readonly AlertChange[],
  observedAt: Date,
): Promise<{ recorded: RecordedAlert[]; changed: number }> {
  const recorded: RecordedAlert[] = [];
  let changed = 0;
  for (let start = 0; start < changes.length; start += MAX_BATCH) {
    const batch = changes.slice(start, start + MAX_BATCH);
    const done = await inTransaction(ledger, (transaction) => changeBatch(transaction, batch, observedAt));
    changed += done.length;
    recorded.push(...done.filter(({ isDeleted }) => !isDeleted).map(recordOf));
  }
  return { recorded, changed };
}

type ChangedRow = Row & { isDeleted: boolean };

async function changeBatch(
  transaction: Ledger,
  changes: readonly AlertChange[],
  observedAt: Date,
): Promise<ChangedRow[]> {
  const given = changes.map((change, index) => ({
    index,
    organization_id: change.organizationId,
    project_id: change.projectId,
    project_uid: change.projectUid,
    name: change.name,
    metric: change.metric,
    threshold: change.threshold,
    state: change.state ?? null,
    value: change.value,
    before_state: change.before?.state ?? null,
    before_since: change.before?.since ?? null,
  }));
  // Not now(), which is when the transaction began: the process may have been stopped since.
  const source = sql`(select * from json_to_recordset(${JSON.stringify(given)}::json) as r (index integer, organization_id text,
    project_id text, project_uid text, name text, metric text, threshold integer, state text, value double precision,
    before_state text, before_since timestamptz)
    where ${observedAt}::timestamptz > clock_timestamp() - ${OBSERVED_WITHIN_SECONDS}::integer * interval '1 second') as g`;
  const isAsBefore = sql`a.project_uid = g.project_uid and a.name = g.name and a.metric = g.metric
    and a.state = g.before_state and a.since = g.before_since`;
  // Moments are compared with what a client has read, which has milliseconds.
  const now = sql`date_trunc('milliseconds', now())`;
  const { rows: updated } = await sql<Row & { index: number }>`
    update alert_states a set state = g.state, since = ${now}, value = g.value, threshold = g.threshold
    from ${source} where g.state is not null and ${isAsBefore} returning a.*, g.index`.execute(transaction);
  const { rows: deleted } = await sql<Row & { index: number; ended_at: Date }>`
    delete from alert_states a using ${source} where g.state is null and ${isAsBefore}
    returning a.*, g.index, ${now} as ended_at`.execute(transaction);
  const { rows: inserted } = await sql<Row>`
    insert into alert_states (organization_id, project_id, project_uid, name, metric, threshold, state, since, value)
    select organization_id, project_id, project_uid, name, metric, threshold, state, ${now}, value
    from ${source} where g.state is not null and g.before_state is null
    order by project_uid, name, metric
    on conflict do nothing returning *`.execute(transaction);
  const events = [
    ...updated.map((row) => alertEvent(recordOf(row), changes[row.index]?.before, row.since)),
    ...deleted.map((row) => alertEvent({ ...recordOf(row), state: undefined }, row, row.ended_at)),
    ...inserted.map((row) => alertEvent(recordOf(row), undefined, row.since)),
  ];
  await recordOwnEvents(
    transaction,
    events.flatMap((event) => event ?? []),
  );
  return [
    ...[...updated, ...inserted].map((row) => ({ ...row, isDeleted: false })),
    ...deleted.map((row) => ({ ...row, isDeleted: true })),
  ];
}

function recordOf(row: Row): RecordedAlert {
  return {
    organizationId: row.organization_id,
    projectId: row.project_id,
    projectUid: row.project_uid,
    name: row.name,
    metric: row.metric,
    threshold: row.threshold,
    state: row.state,
    since: row.since,
    value: row.value,
  };
}
