import { type Kysely, sql } from "kysely";

/**
 * What a project's history up to its last charges comes to, in the row that says up to when it is metered. It follows from the history, and is dropped
 * when a change from before comes.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table plan_meters
      add column checkpoint jsonb,
      add column checkpoint_number integer,
      add constraint no_checkpoint_while_late check (late_from is null or checkpoint is null)`.execute(db);
  await sql`
    create function drop_checkpoint() returns trigger language plpgsql as $$
    begin
      if new.late_from is not null then
        new.checkpoint := null;
        new.checkpoint_number := null;
      end if;
      return new;
    end $$`.execute(db);
  await sql`
    create trigger drop_checkpoint before update on plan_meters for each row execute function drop_checkpoint()`.execute(
    db,
  );
}
