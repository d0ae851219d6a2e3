import { type Kysely, sql } from "kysely";

/** What a write leaves behind: its audit line, its idempotency record, the tombstone of a deleted project. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table audit_log (
      id bigint generated always as identity primary key,
      at timestamptz not null default now(),
      organization_id text,
      actor text not null,
      operation text not null,
      project_id text,
      source_ip text,
      status integer not null,
      code text
    )`.execute(db);
  await sql`create index audit_log_organization on audit_log (organization_id, at)`.execute(db);
  await sql`
    create table idempotency_records (
      organization_id text not null references organizations (id) on delete cascade,
      key text not null,
      body_sha256 bytea not null check (octet_length(body_sha256) = 32),
      project_id text not null,
      completed_at timestamptz,
      created_at timestamptz not null default now(),
      primary key (organization_id, key)
    )`.execute(db);
  await sql`
    create table project_tombstones (
      organization_id text not null,
      project_id text not null,
      deleted_at timestamptz not null default now(),
      primary key (organization_id, project_id)
    )`.execute(db);
}
