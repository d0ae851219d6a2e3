import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import type { BillingFinding } from "./findings.ts";

/** Parts of an audit, of which one that fails is a finding. */

export interface AuditPart {
  organizationId?: string | undefined;
  /** What is audited. */
  key: string;
}

/**
 * Does a part of an audit, in a transaction. Where the ledger takes too long for it, or a row makes it fail, that is a finding, and the audit goes on.
 * @returns whether it was done
 * @throws when the ledger is away
 */
export async function auditPart(
  ledger: Ledger,
  part: AuditPart,
  report: (finding: BillingFinding) => void,
  work: () => Promise<void>,
): Promise<boolean> {
  await sql`savepoint audit_part`.execute(ledger);
  try {
    await work();
    await sql`release savepoint audit_part`.execute(ledger);
    return true;
  } catch (error) {
    // It fails where the connection is lost, and the audit with it.
    await sql`rollback to savepoint audit_part; release savepoint audit_part`.execute(ledger);
    report({ code: "AUDIT_INCOMPLETE", ...part, found: error instanceof Error ? error.message : "an error" });
    return false;
  }
}
