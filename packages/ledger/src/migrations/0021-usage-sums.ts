import { type Kysely, sql } from "kysely";

/**
 * Sums of what was charged, by project and by day, so that an organization's usage is read without its charges: those of a month of 10,000
 * metered projects are millions. Triggers add each statement's charges in its own transaction, whatever release writes them, so the sums are
 * always those of the charges. A credit counts as a negative amount. Sums stay when their charges are retired.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_by_project (
      organization_id text collate "C" not null,
      cycle_start date not null,
      project_id text collate "C" not null,
      kind text collate "C" not null,
      amount numeric not null,
      charges bigint not null,
      primary key (organization_id, cycle_start, project_id, kind)
    ) with (fillfactor = 70)`.execute(db);
  await sql`
    create table usage_by_day (
      organization_id text collate "C" not null,
      day date not null,
      kind text collate "C" not null,
      amount numeric not null,
      charges bigint not null,
      primary key (organization_id, day, kind)
    ) with (fillfactor = 70)`.execute(db);
  // A run that was due in the month before the one in which it started counts on its cycle's first day.
  await sql`
    create function usage_day(at timestamptz, cycle date) returns date
      language sql immutable strict parallel safe
      return least(greatest((at at time zone 'UTC')::date, cycle), (cycle + interval '1 month' - interval '1 day')::date)`.execute(
    db,
  );
  // What a deleted project was called last. Not a column of `project_tombstones`: to add one waits for whatever reads that table, as a dump does.
  await sql`
    create table deleted_project_names (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      name text not null,
      primary key (organization_id, project_id)
    )`.execute(db);
  // The terms of an organization that end in a cycle, and what ended some of them before, for its forecast.
  await sql`
    create index plan_charges_terms on plan_charges (organization_id, ends_at)
      include (kind, project_id, project_uid, instance) where kind in ('term', 'credit')`.execute(db);
  // Until the sums are made nothing may be charged beside them. What reads does not wait.
  await sql`lock table charges, plan_charges in share row exclusive mode`.execute(db);
  for (const table of tables) {
    await sumCharges(db, table);
    await addCharges(db, table);
  }
  for (const name of ["usage_by_project", "usage_by_day"]) {
    const sums = sql.table(name);
    // What the triggers above do is at a depth.
    await sql`
      create trigger no_change before insert or update or delete on ${sums} for each statement when (pg_trigger_depth() = 0)
        execute function refuse_change()`.execute(db);
    await sql`create trigger no_truncate before truncate on ${sums} execute function refuse_change()`.execute(
      db,
    );
  }
}

interface ChargeTable {
  name: "charges" | "plan_charges";
  kind: string;
  day: string;
  amount: string;
}

const tables: readonly ChargeTable[] = [
  {
    name: "charges",
    kind: "case kind when 'storage' then 'job_storage' else kind end",
    day: "usage_day(due_at, cycle_start)",
    amount: "amount",
  },
  {
    name: "plan_charges",
    kind: "kind",
    day: "usage_day(starts_at, cycle_start)",
    amount: "case kind when 'credit' then -amount else amount end",
  },
];

/** Sums of a relation that has charges' columns, by the columns that are a key in either table of sums. */
const grouped = (from: string, { kind, day, amount }: ChargeTable): string => `
  select organization_id, cycle_start, project_id, ${kind} as kind, ${day} as day, sum(${amount}) as amount, count(*) as charges
  from ${from} group by 1, 2, 3, 4, 5`;

/**
 * Rows are locked in the order of their keys, of one table after the other: writers of a statement may wait for each other, and never in a circle.
 * Those of several statements, as of a large adjustment, may: PostgreSQL ends one of them, and that is computed again.
 */
const add = (from: string): string => `
  insert into usage_by_project as u (organization_id, cycle_start, project_id, kind, amount, charges)
  select organization_id, cycle_start, project_id, kind, sum(amount), sum(charges)
  from ${from} group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (organization_id, cycle_start, project_id, kind) do update
    set amount = u.amount + excluded.amount, charges = u.charges + excluded.charges;
  insert into usage_by_day as u (organization_id, day, kind, amount, charges)
  select organization_id, day, kind, sum(amount), sum(charges)
  from ${from} group by 1, 2, 3 order by 1, 2, 3
  on conflict (organization_id, day, kind) do update
    set amount = u.amount + excluded.amount, charges = u.charges + excluded.charges;`;

/** Sums what a table of charges has, which is read once. */
async function sumCharges(db: Kysely<unknown>, table: ChargeTable): Promise<void> {
  const sums = `${table.name}_before`;
  await sql.raw(`create temporary table ${sums} on commit drop as ${grouped(table.name, table)}`).execute(db);
  await sql.raw(`do $$ begin ${add(sums)} end $$`).execute(db);
}

/** From now on the transaction that adds charges adds them to the sums. */
async function addCharges(db: Kysely<unknown>, table: ChargeTable): Promise<void> {
  const name = `add_usage_of_${table.name}`;
  const body = `begin ${add(`(${grouped("added", table)}) sums`)} return null; end`;
  await sql
    .raw(
      `create function ${name}() returns trigger language plpgsql set search_path from current as $$ ${body} $$`,
    )
    .execute(db);
  await sql
    .raw(
      `create trigger add_usage after insert on ${table.name} referencing new table as added for each statement execute function ${name}()`,
    )
    .execute(db);
}
