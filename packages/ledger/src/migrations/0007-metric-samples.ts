import { type Kysely, sql } from "kysely";

/**
 * The latest two samples of every instance of a database, in one row: a sample is one change of one row. Rows change
 * every minute and have no other index, so pages keep room for new versions of them.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table metric_samples (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      instance text collate "C" not null,
      project_uid text not null,
      observed_at timestamptz not null,
      snapshot jsonb not null,
      raw jsonb not null,
      previous_observed_at timestamptz,
      previous_snapshot jsonb,
      previous_raw jsonb,
      primary key (organization_id, project_id, instance),
      constraint previous_is_whole check (
        (previous_observed_at is null) = (previous_snapshot is null)
        and (previous_observed_at is null) = (previous_raw is null)),
      constraint previous_is_older check (previous_observed_at < observed_at)
    ) with (fillfactor = 50)`.execute(db);
}
