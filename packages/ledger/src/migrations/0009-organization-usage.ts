import { type Kysely, sql } from "kysely";

/**
 * What organizations have of what each may have only so much of, paused projects included: a row for every project, for the
 * custom domains of a project, and for every Secret of variables.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table organization_usage (
      organization_id text collate "C" not null,
      kind text collate "C" not null check (kind in ('projects', 'customDomains', 'variableBytes')),
      name text collate "C" not null,
      amount bigint not null check (amount >= 0),
      reserved_at timestamptz not null default now(),
      primary key (organization_id, kind, name)
    )`.execute(db);
}
