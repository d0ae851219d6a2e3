import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { withPartitions } from "./partitions.ts";

/** Who does what, and from where. Carries no body and no secret. */
export interface AuditIntent {
  organizationId: string | null;
  /** `api-key:<id>`, `user:<id>` or `admin`. */
  actor: string;
  /** The operation id of the route, or the admin command. */
  operation: string;
  projectId: string | null;
  sourceIp: string | null;
}

export interface AuditOutcome {
  /** HTTP status of the answer; 200 for an admin command that succeeded. */
  status: number;
  /** The failure's stable code, when it failed. */
  code: string | null;
}

/** An intent with its outcome: a line that is written once it is over. */
export interface AuditEntry extends AuditIntent, AuditOutcome {}

/** Names a row: the moment says in which partition it is. */
export interface AuditKey {
  id: string;
  at: Date;
}

/** The outcome of a begun row, and what the write turned out to be about. */
export interface AuditFinish extends AuditOutcome {
  key: AuditKey;
  projectId: string | null;
  organizationId?: string | null;
  /** When the write was over: its outcome may have waited. */
  finishedAt: Date;
}

/**
 * Writes lines about what is over: refusals that were decided before anything could change.
 * @param entries each with when it was answered: the line may have waited
 */
export async function insertAuditEntries(
  ledger: Ledger,
  entries: readonly { entry: AuditEntry; at: Date }[],
): Promise<void> {
  const rows = entries.map(({ entry, at }) => ({
    ...columns(entry),
    at,
    status: entry.status,
    code: entry.code,
    finished_at: at,
  }));
  const moments = entries.map(({ at }) => at);
  await withPartitions(ledger, moments, () => ledger.insertInto("audit_log").values(rows).execute());
}

/**
 * Writes that something is about to be done, all of it or nothing. A row without an outcome is what a crash leaves: then
 * nobody knows whether it was done.
 * @returns the rows' keys in the order of the intents, for {@link finishAudits}
 */
export async function beginAudits(ledger: Ledger, intents: readonly AuditIntent[]): Promise<AuditKey[]> {
  const at = new Date();
  const unfinished = { at, status: null, code: null, finished_at: null };
  const rows = intents.map((intent) => ({ ...columns(intent), ...unfinished }));
  // Returned in the order of the values: PostgreSQL inserts a list row by row.
  const written = await withPartitions(ledger, [at], () =>
    ledger.insertInto("audit_log").values(rows).returning("id").execute(),
  );
  return written.map(({ id }) => ({ id, at }));
}

/** Adds outcomes to rows that have none. Idempotent. */
export async function finishAudits(ledger: Ledger, finishes: readonly AuditFinish[]): Promise<void> {
  const list = finishes.map(({ key, status, code, projectId, organizationId = null, finishedAt }) => ({
    ...{ id: key.id, at: key.at, status, code, finished_at: finishedAt },
    ...{ project_id: projectId, organization_id: organizationId },
  }));
  await sql`
    update audit_log a set status = f.status, code = f.code, finished_at = f.finished_at,
      organization_id = coalesce(f.organization_id, a.organization_id),
      project_id = coalesce(f.project_id, a.project_id)
    from jsonb_to_recordset(${JSON.stringify(list)}::jsonb) as f (id bigint, at timestamptz, status integer,
      code text, finished_at timestamptz, project_id text, organization_id text)
    where a.id = f.id and a.at = f.at and a.status is null`.execute(ledger);
}

const columns = (intent: AuditIntent) => ({
  organization_id: intent.organizationId,
  actor: intent.actor,
  operation: intent.operation,
  project_id: intent.projectId,
  source_ip: intent.sourceIp,
});
