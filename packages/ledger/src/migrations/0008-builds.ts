import { type Kysely, sql } from "kysely";

/**
 * Builds with their logs, what set them off, and images that nobody's history names any more. A build's chunks go with it. A
 * trigger is what a publication began with: no two builds have the same, and one without a build is only known to have been there.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table builds (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      id text collate "C" not null,
      project_uid text not null,
      triggered_by text not null,
      branch text,
      tag text,
      commit_sha text,
      commit_message text,
      status text not null check (status in ('pending', 'building', 'success', 'failed', 'superseded')),
      digest text,
      error_code text,
      error_message text,
      log_truncated boolean not null default false,
      created_at timestamptz not null,
      started_at timestamptz,
      finished_at timestamptz,
      updated_at timestamptz not null,
      primary key (organization_id, project_id, id),
      constraint ended_when_final check ((finished_at is not null) = (status in ('success', 'failed', 'superseded')))
    )`.execute(db);
  await sql`create index builds_history on builds (organization_id, project_id, created_at desc, id)`.execute(
    db,
  );
  await sql`
    create table build_log_chunks (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      build_id text collate "C" not null,
      sequence bigint not null check (sequence > 0),
      at timestamptz not null,
      level text not null,
      step text not null,
      message text not null,
      final boolean not null default false,
      primary key (organization_id, project_id, build_id, sequence),
      foreign key (organization_id, project_id, build_id) references builds on delete cascade
    )`.execute(db);
  await sql`
    create table build_triggers (
      organization_id text collate "C" not null,
      project_uid text collate "C" not null,
      trigger text collate "C" not null,
      ref text collate "C" not null,
      commit_sha text collate "C" not null,
      build_id text,
      seen_at timestamptz not null default now(),
      primary key (organization_id, project_uid, trigger, ref, commit_sha)
    )`.execute(db);
  await sql`
    create table git_deliveries (
      organization_id text collate "C" not null,
      connection_id text collate "C" not null,
      delivery_id text collate "C" not null,
      received_at timestamptz not null default now(),
      primary key (organization_id, connection_id, delivery_id)
    )`.execute(db);
  await sql`create index git_deliveries_age on git_deliveries (received_at)`.execute(db);
  await sql`
    create table retired_images (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      digest text collate "C" not null,
      retired_at timestamptz not null default now(),
      primary key (organization_id, project_id, digest)
    )`.execute(db);
}
