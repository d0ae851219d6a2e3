import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import { isLockTimeout } from "../refused-rows.ts";

/** One audit of billing runs at a time, and nothing that it reads is dropped meanwhile. */

const KEY = sql`hashtextextended('billing audit', 0)`;

/** Another process audits. */
export class AuditRunningError extends Error {
  constructor() {
    super("an audit of billing runs: try again when it has ended");
    this.name = "AuditRunningError";
  }
}

/**
 * Runs with the lock of audits on a connection of its own. Its end is that of the connection at the latest.
 * @throws AuditRunningError when another one has it for longer than statements wait for locks
 */
export function withAuditLock<T>(ledger: Ledger, work: (connection: Ledger) => Promise<T>): Promise<T> {
  return ledger.connection().execute(async (connection) => {
    // Of the session, and not of the audit's transaction: to ask for it would begin that one's snapshot.
    try {
      await sql`select pg_advisory_lock(${KEY})`.execute(connection);
    } catch (error) {
      throw isLockTimeout(error) ? new AuditRunningError() : error;
    }
    try {
      return await work(connection);
    } finally {
      await unlock(connection);
    }
  });
}

/** What the audit ended with is more than that its connection is lost, with which its lock is. */
const unlock = (connection: Ledger): Promise<unknown> =>
  sql`select pg_advisory_unlock(${KEY})`.execute(connection).catch(() => undefined);

/**
 * Drops a table, unless an audit runs.
 * @returns whether it was dropped
 */
export function dropUnlessAudited(ledger: Ledger, table: string): Promise<boolean> {
  return ledger.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ locked: boolean }>`
      select pg_try_advisory_xact_lock(${KEY}) as locked`.execute(transaction);
    const isFree = rows[0]?.locked ?? false;
    if (isFree) {
      await sql`drop table if exists ${sql.table(table)}`.execute(transaction);
    }
    return isFree;
  });
}
