import { type Kysely, sql } from "kysely";

/**
 * Webhooks of organizations, and the deliveries of events to them. A webhook's secret is in a Secret of its organization's namespace.
 * The payload is JSON as text: it is signed as it is.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table webhooks (
      id text collate "C" primary key,
      organization_id text collate "C" not null,
      url text not null,
      host text not null,
      description text,
      event_types text[] not null,
      project_ids text[],
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      subscribed_since timestamptz not null default now(),
      failing_since timestamptz,
      last_failed_at timestamptz,
      disabled_at timestamptz,
      disabled_reason text,
      dropped_events bigint not null default 0
    )`.execute(db);
  await sql`create index webhooks_of_organization on webhooks (organization_id)`.execute(db);
  await sql`
    create table webhook_deliveries (
      sequence bigint generated always as identity primary key,
      organization_id text collate "C" not null,
      webhook_id text collate "C" not null references webhooks (id) on delete cascade,
      event_id text collate "C" not null,
      event_type text not null,
      project_id text,
      payload text not null,
      created_at timestamptz not null default now(),
      status text not null default 'pending',
      leases integer not null default 0,
      attempts integer not null default 0,
      due_at timestamptz not null default now(),
      held_until timestamptz,
      attempted_at timestamptz,
      finished_at timestamptz,
      response_code integer,
      response_body text,
      error text,
      unique (webhook_id, event_id)
    )`.execute(db);
  for (const index of [
    "webhook_deliveries_due on webhook_deliveries (due_at) where status = 'pending'",
    "webhook_deliveries_waiting on webhook_deliveries (webhook_id, due_at) where status = 'pending'",
    "webhook_deliveries_waiting_of_organization on webhook_deliveries (organization_id) where status = 'pending'",
    "webhook_deliveries_of_organization on webhook_deliveries (organization_id, created_at)",
    "webhook_deliveries_of_webhook on webhook_deliveries (webhook_id, sequence desc) include (status)",
    "webhook_deliveries_ended on webhook_deliveries (finished_at) where status <> 'pending'",
  ]) {
    await sql`create index ${sql.raw(index)}`.execute(db);
  }
  // Ids alone of events that were left out: what is observed again is not sent late.
  await sql`
    create table webhook_skipped_events (
      organization_id text collate "C" not null,
      event_id text collate "C" not null,
      created_at timestamptz not null default now(),
      primary key (organization_id, event_id)
    )`.execute(db);
  await sql`create index webhook_skipped_events_age on webhook_skipped_events (created_at)`.execute(db);
}
