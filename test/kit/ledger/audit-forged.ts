import type { Ledger } from "@slipway/ledger";
import { sql } from "kysely";
import {
  auditSnapshot,
  type BillingAudit,
  type BillingAuditOptions,
} from "../../../packages/ledger/src/billing-audit/audit.ts";
import { forge } from "./forge.ts";

/** Thrown so that a transaction is taken back. */
class TakenBack extends Error {}

/** What an audit finds after statements that the ledger refuses: they are taken back. @throws what a statement throws */
export async function auditForged(
  ledger: Ledger,
  statements: readonly string[],
  options: BillingAuditOptions = {},
): Promise<BillingAudit> {
  let result: BillingAudit | undefined;
  try {
    await ledger.transaction().execute(async (transaction: Ledger) => {
      await forge(transaction, ...statements);
      await sql`set local statement_timeout = '60s'`.execute(transaction);
      result = await auditSnapshot(transaction, options);
      throw new TakenBack();
    });
  } catch (error) {
    if (!(error instanceof TakenBack)) {
      throw error;
    }
  }
  return result as BillingAudit;
}
