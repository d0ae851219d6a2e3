import type { Ledger } from "./connect.ts";

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

/**
 * Writes a line about what is over: a refusal that was decided before anything could change.
 * @param at when it was answered: the line may have waited
 */
export async function insertAuditEntry(ledger: Ledger, entry: AuditEntry, at = new Date()): Promise<void> {
  await ledger
    .insertInto("audit_log")
    .values({ ...columns(entry), at, status: entry.status, code: entry.code, finished_at: at })
    .execute();
}

/**
 * Writes that something is about to be done. The row without an outcome is what a crash leaves: then nobody knows
 * whether it was done.
 * @returns the row's id, for {@link finishAudit}
 */
export async function beginAudit(ledger: Ledger, intent: AuditIntent): Promise<string> {
  const { id } = await ledger
    .insertInto("audit_log")
    .values({ ...columns(intent), at: new Date(), status: null, code: null, finished_at: null })
    .returning("id")
    .executeTakeFirstOrThrow();
  return id;
}

/**
 * Adds the outcome to a row that has none, and what the write turned out to be about. Idempotent.
 * @param finishedAt when the write was over: its outcome may have waited
 */
export async function finishAudit(
  ledger: Ledger,
  id: string,
  {
    status,
    code,
    projectId,
    organizationId = null,
  }: AuditOutcome & { projectId: string | null; organizationId?: string | null },
  finishedAt = new Date(),
): Promise<void> {
  await ledger
    .updateTable("audit_log")
    .set((update) => ({
      status,
      code,
      organization_id: update.fn.coalesce(update.val(organizationId), "organization_id"),
      project_id: update.fn.coalesce(update.val(projectId), "project_id"),
      finished_at: finishedAt,
    }))
    .where("id", "=", id)
    .where("status", "is", null)
    .execute();
}

const columns = (intent: AuditIntent) => ({
  organization_id: intent.organizationId,
  actor: intent.actor,
  operation: intent.operation,
  project_id: intent.projectId,
  source_ip: intent.sourceIp,
});
