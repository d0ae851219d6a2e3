/** Which changes in statuses the ledger may not have, and which of them are recorded first. Pure. */

import { organizationOfNamespace, type Project } from "@slipway/crds";
import type { BillableChangeRow, NumberedChange } from "@slipway/ledger";
import { changesOf, isBehind, type KnownRecord } from "./billable-changes.ts";
import { inTurns } from "./turns.ts";

/** The changes of one project that the ledger may not have. */
export interface PendingChanges {
  project: Project;
  rows: BillableChangeRow[];
}

/** What the ledger may not have of a project; nothing outside of organizations. */
export function pendingOf(project: Project, known: KnownRecord | undefined): BillableChangeRow[] {
  const { namespace = "", name, uid = "" } = project.metadata;
  const organizationId = organizationOfNamespace(namespace);
  const changes = changesOf(project);
  if (organizationId === undefined || isBehind(changes, known)) {
    return [];
  }
  return changes
    .filter((change) => !isRecorded(change, known))
    .map((change) => ({ organizationId, projectId: name, projectUid: uid, ...change }));
}

/** Whether the ledger has the end of a deleted project, or there is no history. */
export function hasEnded(project: Project, known: KnownRecord | undefined): boolean {
  const last = changesOf(project).at(-1);
  if (last !== undefined && known?.goesOnAfter !== undefined) {
    return isEnd(known.goesOnAfter);
  }
  return last === undefined || (isEnd(last) && isRecorded(last, known));
}

/** Deleted projects first: their finalizers wait. Of these, and of the others, organizations take turns. */
export function inOrder(pending: readonly PendingChanges[]): PendingChanges[] {
  const isDeleted = ({ project }: PendingChanges) => project.metadata.deletionTimestamp !== undefined;
  return [pending.filter(isDeleted), pending.filter((one) => !isDeleted(one))].flatMap((some) =>
    inTurns(some, ({ project }) => project.metadata.namespace),
  );
}

/** The first of them with so many changes at most, and one in any case. */
export function batchOf(pending: readonly PendingChanges[], most: number): PendingChanges[] {
  let size = 0;
  const end = pending.findIndex(({ rows }, index) => {
    size += rows.length;
    return index > 0 && size > most;
  });
  return end === -1 ? [...pending] : pending.slice(0, end);
}

const isRecorded = ({ number }: NumberedChange, known: KnownRecord | undefined): boolean =>
  known !== undefined &&
  (number <= known.number || (known.goesOnAfter !== undefined && isEnd(known.goesOnAfter)));

const isEnd = ({ state }: NumberedChange): boolean => state === undefined;
