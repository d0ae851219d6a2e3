import { type Kysely, sql } from "kysely";

/**
 * Recipients of e-mail are webhooks with an address: one queue, one log and one share serve both. Confirmation mails are counted in a
 * table of their own, since a recipient may be deleted and created again.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const column of [
    "email text",
    "confirmed_at timestamptz",
    "confirmation_code text",
    "confirmation_expires_at timestamptz",
    "confirmation_tries integer not null default 0",
    "unsubscribe_token text",
  ]) {
    await sql`alter table webhooks add column ${sql.raw(column)}`.execute(db);
  }
  await sql`
    create unique index webhooks_email on webhooks (organization_id, email) where email is not null`.execute(
    db,
  );
  await sql`
    create unique index webhooks_unsubscribe_token on webhooks (unsubscribe_token)
    where unsubscribe_token is not null`.execute(db);
  await sql`
    create table email_confirmations (
      sequence bigint generated always as identity primary key,
      organization_id text collate "C" not null,
      mailbox text collate "C" not null,
      created_at timestamptz not null default now()
    )`.execute(db);
  for (const index of [
    "email_confirmations_of_organization on email_confirmations (organization_id, created_at)",
    "email_confirmations_of_mailbox on email_confirmations (mailbox, created_at)",
    "email_confirmations_age on email_confirmations (created_at)",
  ]) {
    await sql`create index ${sql.raw(index)}`.execute(db);
  }
}
