import { type Kysely, sql } from "kysely";

/** Organizations, who may act in them, and what they were allowed. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table organizations (
      id text primary key check (id ~ '^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$'),
      name text not null check (length(name) between 1 and 128),
      blocked boolean not null default false,
      created_at timestamptz not null default now()
    )`.execute(db);
  await sql`
    create table users (
      id text primary key,
      created_at timestamptz not null default now()
    )`.execute(db);
  await sql`
    create table memberships (
      user_id text not null references users (id) on delete cascade,
      organization_id text not null references organizations (id) on delete cascade,
      role text not null check (role in ('owner', 'assistant', 'member')),
      created_at timestamptz not null default now(),
      primary key (user_id, organization_id)
    )`.execute(db);
  await sql`
    create table api_keys (
      id text primary key,
      organization_id text not null references organizations (id) on delete cascade,
      prefix text not null,
      sha256 bytea not null check (octet_length(sha256) = 32),
      created_at timestamptz not null default now(),
      revoked_at timestamptz
    )`.execute(db);
  await sql`
    create table grants (
      id bigint generated always as identity primary key,
      organization_id text not null references organizations (id) on delete cascade,
      api_key_id text references api_keys (id) on delete cascade,
      user_id text,
      permission text not null,
      resource text not null,
      created_at timestamptz not null default now(),
      check (num_nonnulls(api_key_id, user_id) = 1),
      unique nulls not distinct (api_key_id, user_id, organization_id, permission, resource),
      foreign key (user_id, organization_id) references memberships (user_id, organization_id) on delete cascade
    )`.execute(db);
}
