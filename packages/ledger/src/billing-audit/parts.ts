import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import { isTooSlow } from "../refused-rows.ts";
import type { BillingFinding } from "./findings.ts";

/** Parts of an audit, of which one that fails is a finding. */

export interface AuditPart {
  organizationId?: string | undefined;
  /** What is audited. */
  key: string;
  /** Of parts together that the ledger may take too long for: after the second one the others are left out. */
  timeouts?: { count: number } | undefined;
}

/** How often the ledger may take too long: each time for as long as a statement may take. */
const MOST_TIMEOUTS = 2;

/**
 * Does a part of an audit, in a transaction. Where the ledger takes too long for it, or a row makes it fail, that is a finding, and the audit goes on.
 * @returns whether it was done
 * @throws when the ledger is away
 */
export async function auditPart(
  ledger: Ledger,
  { timeouts, ...part }: AuditPart,
  report: (finding: BillingFinding) => void,
  work: () => Promise<void>,
): Promise<boolean> {
  if (timeouts !== undefined && timeouts.count >= MOST_TIMEOUTS) {
    return false;
  }
  await sql`savepoint audit_part`.execute(ledger);
  try {
    await work();
    await sql`release savepoint audit_part`.execute(ledger);
    return true;
  } catch (error) {
    // It fails where the connection is lost, and the audit with it.
    await sql`rollback to savepoint audit_part; release savepoint audit_part`.execute(ledger);
    let found = error instanceof Error ? error.message : "an error";
    if (timeouts !== undefined && isTooSlow(error)) {
      timeouts.count += 1;
      found += timeouts.count < MOST_TIMEOUTS ? "" : ": what follows of the organization is left out";
    }
    report({ code: "AUDIT_INCOMPLETE", ...part, found });
    return false;
  }
}
