import { type Kysely, sql } from "kysely";

/** What projects did and what they hold: deployments, countable slots, capacities; audit rows that begin before the write. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table deployments (
      id text not null,
      organization_id text not null,
      project_id text not null,
      created_at timestamptz not null,
      finished_at timestamptz,
      status text not null check (status in ('in_progress', 'succeeded', 'failed', 'superseded')),
      updated_image boolean not null,
      image text not null,
      digest text,
      settings_hash text not null,
      message text,
      primary key (organization_id, project_id, id)
    )`.execute(db);
  await sql`create index deployments_history on deployments (organization_id, project_id, created_at)`.execute(
    db,
  );
  // A project's name is unique in its organization only: kubectl users choose theirs.
  await sql`
    create table project_slots (
      organization_id text not null,
      project_id text not null,
      plan text not null,
      scope text,
      slots integer not null check (slots >= 0),
      taken_at timestamptz not null default now(),
      primary key (organization_id, project_id)
    )`.execute(db);
  await sql`create index project_slots_plan on project_slots (plan)`.execute(db);
  await sql`
    create table plan_capacities (
      plan text primary key,
      max_projects integer not null check (max_projects >= 0)
    )`.execute(db);
  await sql`alter table audit_log alter column status drop not null`.execute(db);
  await sql`alter table audit_log add column finished_at timestamptz`.execute(db);
  await sql`update audit_log set finished_at = at`.execute(db);
}
