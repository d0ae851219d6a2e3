import { type Kysely, sql } from "kysely";

/** The state of each rule of a project's alerts, written when it changes. A rule that has never had data has no row. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table alert_states (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      project_uid text collate "C" not null,
      name text collate "C" not null,
      metric text collate "C" not null,
      threshold integer,
      state text not null,
      since timestamptz not null,
      value double precision,
      primary key (project_uid, name, metric)
    )`.execute(db);
}
