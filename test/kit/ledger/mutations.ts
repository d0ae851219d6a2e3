import type { Ledger } from "@slipway/ledger";
import { sql } from "kysely";
import { randomOf } from "../random.ts";

/** Changes of rows at random, such as the ledger refuses: an administrator of its server can make them. */

interface Table {
  name: string;
  columns: readonly string[];
}

interface Column {
  name: string;
  type: string;
  nullable: boolean;
}

/** Another value of a type, in SQL. */
const others: Readonly<Record<string, (column: string) => string>> = {
  text: (column) => `coalesce(${column}, '') || 'x'`,
  boolean: (column) => `not coalesce(${column}, false)`,
  integer: (column) => `coalesce(${column}, 0) + 1`,
  bigint: (column) => `coalesce(${column}, 0) + 1`,
  numeric: (column) => `coalesce(${column}, 0) + 0.000000001`,
  date: (column) => `${column} + 1`,
  jsonb: (column) => `jsonb_build_array(${column})`,
  "timestamp with time zone": (column) => `coalesce(${column}, now()) + interval '1 microsecond'`,
};

/** Values of a type that nothing is computed from. */
const extremes: Readonly<Record<string, readonly string[]>> = {
  text: ["''", "'x/y/z'"],
  integer: ["2147483647", "0"],
  bigint: ["9223372036854775807", "-1"],
  numeric: ["'NaN'", "1e30", "-1"],
  date: ["'-infinity'", "'infinity'", "'0001-01-01'", "'9999-12-01'"],
  jsonb: ["'null'", "'7'", "'[{}]'"],
  "timestamp with time zone": ["'-infinity'", "'infinity'", "'0001-01-01Z'", "'9999-12-31Z'"],
};

/**
 * Makes mutations possible in a transaction, which is to be taken back: without triggers, checks and keys.
 * @returns mutates a random row at each call, and returns what it did
 */
export async function prepareMutations(ledger: Ledger, tables: readonly Table[], seed: number) {
  await sql`set local session_replication_role = replica`.execute(ledger);
  await sql`set local statement_timeout = '60s'`.execute(ledger);
  const columns = new Map<string, Column[]>();
  for (const { name } of tables) {
    const { rows: constraints } = await sql<{ name: string }>`
      select conname as name from pg_constraint where conrelid = ${name}::regclass and contype <> 'n'`.execute(
      ledger,
    );
    for (const { name: constraint } of constraints) {
      await sql`alter table ${sql.table(name)} drop constraint if exists ${sql.ref(constraint)} cascade`.execute(
        ledger,
      );
    }
    const { rows } = await sql<Column>`
      select column_name as name, data_type as type, is_nullable = 'YES' as nullable from information_schema.columns
      where table_name = ${name} order by ordinal_position`.execute(ledger);
    columns.set(name, rows);
  }
  await sql`drop index if exists billable_changes_end`.execute(ledger);
  const random = randomOf(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

  async function next(): Promise<string> {
    const table = pick(tables);
    const { rows } = await sql<{ row: string }>`
      select tableoid || ' ' || ctid as row from ${sql.table(table.name)} order by tableoid, ctid`.execute(
      ledger,
    );
    const row = pick(rows).row;
    const [oid = "", ctid = ""] = row.split(" ");
    const its = `tableoid = ${oid} and ctid = '${ctid}'`;
    const own = columns.get(table.name) ?? [];
    const times = own.filter(({ type }) => type === "timestamp with time zone");
    const edit = () => {
      const { name, type } = pick(own);
      return `update ${table.name} set ${name} = ${others[type]?.(name) ?? "null"} where ${its}`;
    };
    const statements: Record<string, () => string> = {
      edit,
      // A partition has no row of such a date, and a check of the partitions refuses it.
      forge: () => {
        const { name, type } = pick(own);
        const isOfPartition = table.name === "charges" && name === "due_at";
        return isOfPartition
          ? edit()
          : `update ${table.name} set ${name} = ${pick(extremes[type] ?? [`not ${name}`])} where ${its}`;
      },
      empty: () => {
        const { name, type, nullable } = pick(own);
        // What is empty already is filled.
        return nullable
          ? `update ${table.name} set ${name} = case when ${name} is null then ${others[type]?.(name)} end where ${its}`
          : `delete from ${table.name} where ${its}`;
      },
      delete: () => `delete from ${table.name} where ${its}`,
      duplicate: () => `insert into ${table.name} select * from ${table.name} where ${its}`,
      swap: () =>
        own.some(({ name }) => name === "organization_id")
          ? `update ${table.name} set organization_id = case organization_id when 'acme' then 'beta' else 'acme' end where ${its}`
          : edit(),
      move: () => {
        const { name } = pick(times.length > 0 ? times : own);
        return times.length > 0
          ? `update ${table.name} set ${name} = coalesce(${name}, now()) - interval '1 hour' where ${its}`
          : `delete from ${table.name} where ${its}`;
      },
    };
    const statement = pick(Object.values(statements))();
    await sql.raw(statement).execute(ledger);
    return statement;
  }
  return { next };
}
