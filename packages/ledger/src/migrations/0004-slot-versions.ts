import { type Kysely, sql } from "kysely";

/**
 * Every taking of a slot has a number, so that one is given back only as it was known to whoever does so; and deployments
 * that never ended are found without reading all of them.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create sequence project_slot_versions`.execute(db);
  await sql`
    alter table project_slots
      add column version bigint not null default nextval('project_slot_versions')`.execute(db);
  await sql`
    create index deployments_open on deployments (created_at) where status = 'in_progress'`.execute(db);
}
