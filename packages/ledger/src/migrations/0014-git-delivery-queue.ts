import { type Kysely, sql } from "kysely";

/** Deliveries of hooks that are answered and not worked off yet. The event is JSON as text: jsonb takes no NUL. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table git_delivery_queue (
      sequence bigint generated always as identity primary key,
      organization_id text collate "C" not null,
      connection_id text collate "C" not null,
      delivery_id text collate "C" not null,
      event text not null,
      received_at timestamptz not null default now(),
      attempts integer not null default 0,
      due_at timestamptz not null default now(),
      held_until timestamptz,
      unique (organization_id, connection_id, delivery_id)
    )`.execute(db);
  await sql`create index git_delivery_queue_due on git_delivery_queue (due_at)`.execute(db);
}
