import { type RawBuilder, sql, type Transaction } from "kysely";
import type { Ledger } from "./connect.ts";
import type { LedgerSchema } from "./schema.ts";
import { leavesOf, type SealScheme, sealScheme, tablesOf } from "./sealed-tables.ts";

/** Seals: a chain of hashes of all rows that money follows from, by when they were recorded. docs/billing-audit.md#seals */

export interface BillingSeal {
  number: number;
  /** In hexadecimal. */
  hash: string;
  rows: number;
  /** All that was recorded before is sealed. */
  to: Date;
}

export interface SealedUntil {
  /** The seal that this call made; undefined where nothing was recorded, or another process seals. */
  seal: BillingSeal | undefined;
  /** All that was recorded before is sealed; undefined where another process seals. */
  until: Date | undefined;
  /** Whether there may be more to seal. */
  isMore: boolean;
}

/** How long before now: longer than a transaction, and than clocks of the ledger's servers differ. As invoices have it. */
const LAG_MS = 3_600_000;
/** The longest time of one seal: what was recorded before there were seals is sealed in several. */
const LONGEST_MS = 86_400_000;

/**
 * Seals the oldest rows that no seal has, up to a day of them or what is given. Only what can get no more rows: an hour old, and from before all transactions that run,
 * which have their beginning as the time of their rows.
 * @throws when the database is away or the answer was lost: the seal is there then, or nothing of it
 */
export function sealBilling(
  ledger: Ledger,
  { lagMs = LAG_MS, longestMs }: { lagMs?: number; longestMs?: number } = {},
): Promise<SealedUntil> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      const isOurs = await lockSeals(transaction);
      return isOurs
        ? sealNext(transaction, { lagMs, longestMs, scheme: sealScheme })
        : { seal: undefined, until: undefined, isMore: false };
    });
}

/** @internal Seals in a transaction, in which no other process seals. */
export async function sealNext(
  transaction: Ledger,
  {
    lagMs,
    longestMs = LONGEST_MS,
    scheme,
  }: { lagMs: number; longestMs?: number | undefined; scheme: SealScheme },
): Promise<SealedUntil> {
  // Hashes are of rows as text, in which times are in the session's zone.
  await sql`set local timezone = 'UTC'`.execute(transaction);
  return seal(transaction, { cut: await cutOf(transaction, lagMs), longestMs, scheme });
}

/** Undefined where there are no seals. */
export async function lastSeal(ledger: Ledger): Promise<BillingSeal | undefined> {
  const { rows } = await sql<Record<"number" | "hash" | "rows", string> & { to: Date }>`
    select number, encode(hash, 'hex') as hash, rows, sealed_to as to from billing_seals order by number desc limit 1`.execute(
    ledger,
  );
  const [last] = rows;
  return last && { ...last, number: Number(last.number), rows: Number(last.rows) };
}

async function lockSeals(transaction: Transaction<LedgerSchema>): Promise<boolean> {
  const { rows } = await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('billing seals', 0)) as locked`.execute(transaction);
  return rows[0]?.locked ?? false;
}

/**
 * The instant before which nothing more is recorded. Of a prepared transaction only the end is known, before which it began within the same time as
 * another one may not be seen. Instants are text: PostgreSQL's have microseconds.
 */
async function cutOf(transaction: Ledger, lagMs: number): Promise<string> {
  const { rows } = await sql<{ cut: string }>`
    select least(clock_timestamp() - make_interval(secs => ${lagMs / 1_000}), (
      select min(xact_start) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and backend_type = 'client backend'), (
      select min(prepared) - make_interval(secs => ${lagMs / 1_000}) from pg_prepared_xacts
      where database = current_database()))::text as cut`.execute(transaction);
  return rows[0]?.cut ?? "-infinity";
}

async function seal(
  transaction: Ledger,
  { cut, longestMs, scheme }: { cut: string; longestMs: number; scheme: SealScheme },
): Promise<SealedUntil> {
  const { rows: last } = await sql<{ number: string; to: string }>`
    select number, sealed_to::text as to from billing_seals order by number desc limit 1`.execute(
    transaction,
  );
  const number = Number(last[0]?.number ?? 0) + 1;
  const sealedFrom = last[0]?.to ?? "-infinity";
  let from = last[0]?.to ?? (await firstRecorded(transaction, scheme, "-infinity")) ?? cut;
  for (;;) {
    const { to, until, isEmpty, isMore } = await windowOf(transaction, { from, cut, longestMs });
    const count = isEmpty ? 0 : await writeLeaves(transaction, { number, scheme, bounds: [from, to] });
    if (count > 0) {
      const hash = await writeSeal(transaction, {
        number,
        format: scheme.format,
        from: sealedFrom,
        to,
        count,
      });
      return { seal: { number, hash, rows: count, to: until }, until, isMore };
    }
    if (!isMore) {
      return { seal: undefined, until, isMore };
    }
    from = (await firstRecorded(transaction, scheme, to)) ?? cut;
  }
}

interface Window {
  /** The first instant after it: `until` has its milliseconds. */
  to: string;
  until: Date;
  isEmpty: boolean;
  /** Whether it ends before all of the time does. */
  isMore: boolean;
}

async function windowOf(
  transaction: Ledger,
  { from, cut, longestMs }: { from: string; cut: string; longestMs: number },
): Promise<Window> {
  const longest = sql`make_interval(secs => ${longestMs / 1_000})`;
  const { rows } = await sql<Window>`
    select least(c.cut, f.begins + ${longest})::text as to,
      greatest(f.begins, least(c.cut, f.begins + ${longest})) as until,
      f.begins >= c.cut as "isEmpty", f.begins + ${longest} < c.cut as "isMore"
    from (select ${from}::timestamptz as begins) f, (select ${cut}::timestamptz as cut) c`.execute(
    transaction,
  );
  return rows[0] as Window;
}

/** When the first row was recorded that is not from before an instant. It reads what was recorded since. */
async function firstRecorded(
  transaction: Ledger,
  scheme: SealScheme,
  since: string,
): Promise<string | undefined> {
  const firsts = tablesOf(scheme, scheme.format)
    .filter(({ ofInvoice }) => !ofInvoice)
    .map(({ name, recordedAt }) => {
      const time = sql.ref(recordedAt);
      return sql`(select min(${time}) from ${sql.table(name)} where ${time} >= ${since}::timestamptz)`;
    });
  const { rows } = await sql<{
    first: string | null;
  }>`select least(${sql.join(firsts)})::text as first`.execute(transaction);
  return rows[0]?.first ?? undefined;
}

/** @returns how many rows they are of */
async function writeLeaves(
  transaction: Ledger,
  { number, scheme, bounds }: { number: number; scheme: SealScheme; bounds: readonly [string, string] },
): Promise<number> {
  const { format } = scheme;
  let count = 0;
  for (const table of tablesOf(scheme, format)) {
    const { rows } = await sql<{ rows: string }>`
      insert into billing_seal_leaves (number, relation, organization_id, part, rows, hash)
      select ${number}, relation, organization_id, part, rows, hash from (${leavesOf(table, { format, bounds })}) l
      returning rows`.execute(transaction);
    count += rows.reduce((sum, leaf) => sum + Number(leaf.rows), 0);
  }
  return count;
}

async function writeSeal(
  transaction: Ledger,
  {
    number,
    format,
    from,
    to,
    count,
  }: { number: number; format: number; from: string; to: string; count: number },
): Promise<string> {
  const { rows } = await sql<{ hash: string }>`
    insert into billing_seals (number, format, sealed_from, sealed_to, rows, sealed_at, previous, hash)
    select number, format, sealed_from, sealed_to, rows, sealed_at, previous, ${sealHash(sql`s`)}
    from (select ${number}::bigint as number, ${format}::integer as format, ${from}::timestamptz as sealed_from, ${to}::timestamptz as sealed_to,
      ${count}::bigint as rows, now() as sealed_at, coalesce((select hash from billing_seals where number = ${number - 1}),
        decode(repeat('00', 32), 'hex')) as previous) s
    returning encode(hash, 'hex') as hash`.execute(transaction);
  const [row] = rows;
  if (!row) {
    throw new Error("the ledger did not seal");
  }
  return row.hash;
}

/** @internal The hash of a seal: of the one before, its time, and all of its leaves. The session's time zone is UTC. */
export const sealHash = (seal: RawBuilder<unknown>) => sql`sha256(${seal}.previous
  || convert_to(jsonb_build_array(${seal}.number, ${seal}.format, ${seal}.sealed_from, ${seal}.sealed_to, ${seal}.rows,
      ${seal}.sealed_at)::text, 'UTF8')
  || (select coalesce(string_agg(sha256(convert_to(jsonb_build_array(l.relation, l.organization_id, l.part, l.rows,
        encode(l.hash, 'hex'))::text, 'UTF8')), ''::bytea order by l.relation, l.organization_id, l.part), ''::bytea)
      from billing_seal_leaves l where l.number = ${seal}.number))`;
