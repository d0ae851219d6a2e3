import { type QueryExecutorProvider, sql } from "kysely";
import type { Ledger } from "../connect.ts";
import { isLockTimeout } from "../refused-rows.ts";

/** One audit of billing runs at a time, and nothing that it reads is dropped meanwhile. */

const KEY = sql`hashtextextended('billing audit', 0)`;

/** The name of an audit's connections, by which a migration ends them. */
export const AUDIT_APPLICATION = "slipway-audit";

/** How often connections are ended before what has the lock is waited for, and how long it is between. */
const MOST_ENDS = 100;
const END_SECONDS = 0.1;

/** Another process audits, or has locked what an audit reads. */
export class AuditRunningError extends Error {
  constructor() {
    super("an audit of billing runs, or retention or an upgrade: try again when it has ended");
    this.name = "AuditRunningError";
  }
}

/** It takes longer than it may. */
export class AuditTimeoutError extends Error {
  constructor(timeoutMs: number) {
    super(`the audit takes longer than ${timeoutMs / 1_000} s`);
    this.name = "AuditTimeoutError";
  }
}

/** @throws AuditRunningError where the ledger has a lock that work waits for for too long */
export async function refuseLocked<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isLockTimeout(error) ? new AuditRunningError() : error;
  }
}

/**
 * Does what may take so long on a connection, which is ended then: so is the statement that it waits for.
 * @param ledger has another connection to spare
 * @throws AuditTimeoutError when it takes longer
 */
export async function withinTime<T>(
  ledger: Ledger,
  { connection, timeoutMs }: { connection: Ledger; timeoutMs: number },
  work: () => Promise<T>,
): Promise<T> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(connection);
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = true;
    // Where the ledger is away its answers end by themselves.
    sql`select pg_terminate_backend(${rows[0]?.pid})`.execute(ledger).catch(() => undefined);
  }, timeoutMs);
  try {
    return await work();
  } catch (error) {
    throw isOver ? new AuditTimeoutError(timeoutMs) : error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Runs with the lock of audits on a connection of its own. Its end is that of the connection at the latest.
 * @throws AuditRunningError when another one has it for longer than statements wait for locks
 */
export function withAuditLock<T>(ledger: Ledger, work: (connection: Ledger) => Promise<T>): Promise<T> {
  return ledger.connection().execute(async (connection) => {
    // Of the session, and not of the audit's transaction: to ask for it would begin that one's snapshot.
    await refuseLocked(() => sql`select pg_advisory_lock(${KEY})`.execute(connection));
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

/**
 * Keeps audits from running until a transaction ends, and ends one that runs: what a migration locks all that is charged would wait for as well, behind
 * the audit.
 */
export async function endAudits(transaction: QueryExecutorProvider): Promise<void> {
  for (let tried = 0; tried < MOST_ENDS; tried += 1) {
    const { rows } = await sql<{ locked: boolean }>`
      select pg_try_advisory_xact_lock(${KEY}) as locked`.execute(transaction);
    if (rows[0]?.locked) {
      return;
    }
    // What is connected is read once a transaction otherwise: an audit that began since would not be found.
    await sql`select pg_stat_clear_snapshot()`.execute(transaction);
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = current_user
        and application_name = ${AUDIT_APPLICATION}`.execute(transaction);
    await sql`select pg_sleep(${END_SECONDS})`.execute(transaction);
  }
  await sql`select pg_advisory_xact_lock(${KEY})`.execute(transaction);
}
