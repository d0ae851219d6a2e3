import { type Kysely, sql } from "kysely";

/**
 * What has not happened yet by the database's own clock is not billed: a leader whose clock is ahead can charge nothing. A minute is
 * left for clocks that differ: 30 s for a leader's, 10 s for a node's beside it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function refuse_ahead() returns trigger language plpgsql as $$
    declare
      latest timestamptz := (to_jsonb(new) ->> tg_argv[0])::timestamptz;
    begin
      if latest > clock_timestamp() + interval '1 minute' then
        raise exception '% of % lies ahead of the ledger''s time', tg_argv[0], tg_table_name
          using errcode = 'check_violation', constraint = 'nothing_ahead';
      end if;
      return new;
    end $$`.execute(db);
  for (const [table, column] of [
    ["job_runs", "finished_at"],
    ["storage_hours", "hour_started_at"],
    ["charges", "due_at"],
  ] as const) {
    await sql`
      create trigger nothing_ahead before insert on ${sql.table(table)} for each row
        execute function refuse_ahead(${sql.lit(column)})`.execute(db);
  }
}
