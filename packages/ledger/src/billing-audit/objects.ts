import { isDeepStrictEqual } from "node:util";
import { sql } from "kysely";
import { type ChangeRow, changeOf, type NumberedChange } from "../billable-changes.ts";
import type { Ledger } from "../connect.ts";
import type { BillingFinding } from "./findings.ts";

/** Compares histories of the ledger with what projects' objects in the cluster say: docs/billing-audit.md#objects-of-the-cluster. */

/** A project's object, with the changes in its status, oldest first. */
export interface AuditedObject {
  projectId: string;
  projectUid: string;
  changes: readonly NumberedChange[];
}

type Found = Omit<BillingFinding, "organizationId">;

/** How long a change may be on its way, in milliseconds. */
const PENDING_MS = 3_600_000;
/** Objects whose changes are read together. */
const OBJECTS = 200;

/** @param objects all of the organization's, which were read before */
export async function auditObjects(
  ledger: Ledger,
  organizationId: string,
  objects: readonly AuditedObject[],
  report: (finding: BillingFinding) => void,
): Promise<void> {
  const { rows: time } = await sql<{ now: Date }>`select now()`.execute(ledger);
  const now = time[0]?.now ?? new Date();
  const listed = objects.filter(({ changes }) => changes.length > 0);
  for (let start = 0; start < listed.length; start += OBJECTS) {
    const some = listed.slice(start, start + OBJECTS);
    const rows = await recordedChanges(ledger, some);
    const recorded = Map.groupBy(rows, ({ projectUid }) => projectUid);
    for (const object of some) {
      for (const finding of compareObject(object, recorded.get(object.projectUid) ?? [], now)) {
        report({ organizationId, ...finding });
      }
    }
  }
  const uids = objects.map(({ projectUid }) => projectUid);
  const { rows: missing } = await sql<{ key: string; project_id: string }>`
    select project_uid as key, project_id from plan_meters m
    where organization_id = ${organizationId} and not deleted and project_uid <> all (${uids}::text[])
      and (select max(recorded_at) from billable_changes c where c.project_uid = m.project_uid) < ${new Date(now.getTime() - PENDING_MS)}
    order by project_uid limit 1000`.execute(ledger);
  for (const { key, project_id } of missing) {
    report({
      code: "OBJECT_MISSING",
      organizationId,
      key,
      expected: `the Project ${project_id}, or its end`,
    });
  }
}

/** A change with when the ledger recorded it. */
export interface RecordedChange extends NumberedChange {
  recordedAt: Date;
}

/** What the ledger has of some projects from their statuses' first changes on. */
async function recordedChanges(
  ledger: Ledger,
  objects: readonly AuditedObject[],
): Promise<(RecordedChange & { projectUid: string })[]> {
  const uids = objects.map(({ projectUid }) => projectUid);
  const firsts = objects.map(({ changes }) => changes[0]?.number ?? 1);
  const { rows } = await sql<ChangeRow & { recorded_at: Date }>`
    select c.* from unnest(${uids}::text[], ${firsts}::integer[]) g (project_uid, first)
    join billable_changes c on c.project_uid = g.project_uid and c.number >= g.first
    order by c.project_uid, c.number`.execute(ledger);
  return rows.map((row) => ({ ...changeOf(row), recordedAt: row.recorded_at }));
}

/** What differs between a status and the ledger, from the status' first change on. */
export function compareObject(
  { projectUid, changes }: AuditedObject,
  recorded: readonly RecordedChange[],
  now: Date,
): Found[] {
  const [inStatus, inLedger] = [byNumber(changes), byNumber(recorded)];
  const numbers = [...new Set([...inStatus.keys(), ...inLedger.keys()])].sort((a, b) => a - b);
  return numbers.flatMap((number): Found[] => {
    const [expected, found] = [inStatus.get(number), inLedger.get(number)];
    // A status is written before the ledger, which may have a change that it was sent late.
    const since = expected === undefined ? found?.recordedAt : expected.at;
    const isOnItsWay =
      (expected === undefined || found === undefined) && now.getTime() - (since?.getTime() ?? 0) < PENDING_MS;
    if (isOnItsWay || isSame(expected, found)) {
      return [];
    }
    const key = `${projectUid}/${number}`;
    return [{ code: "OBJECT_DIFFERS", key, expected: describe(expected), found: describe(found) }];
  });
}

const byNumber = <T extends NumberedChange>(changes: readonly T[]): Map<number, T> =>
  new Map(changes.map((change) => [change.number, change]));

const isSame = (a: NumberedChange | undefined, b: NumberedChange | undefined): boolean =>
  a?.at.getTime() === b?.at.getTime() && isDeepStrictEqual(a?.state, b?.state);

const describe = (change: NumberedChange | undefined): string =>
  change === undefined ? "none" : `${change.at.toISOString()} ${JSON.stringify(change.state ?? "deleted")}`;
