import type { Ledger } from "./connect.ts";

/** Who did what, from where, with which outcome. Carries no body and no secret. */
export interface AuditEntry {
  organizationId: string | null;
  /** `api-key:<id>`, `user:<id>` or `admin`. */
  actor: string;
  /** The operation id of the route, or the admin command. */
  operation: string;
  projectId: string | null;
  sourceIp: string | null;
  /** HTTP status of the answer; 200 for an admin command that succeeded. */
  status: number;
  /** The failure's stable code, when it failed. */
  code: string | null;
}

export async function insertAuditEntry(ledger: Ledger, entry: AuditEntry): Promise<void> {
  await ledger
    .insertInto("audit_log")
    .values({
      organization_id: entry.organizationId,
      actor: entry.actor,
      operation: entry.operation,
      project_id: entry.projectId,
      source_ip: entry.sourceIp,
      status: entry.status,
      code: entry.code,
    })
    .execute();
}
