import { type Kysely, sql } from "kysely";

/**
 * What payment providers have reported, each event once, and what became of unpaid invoices: notices, and blocks of organizations, which are apart
 * from those that administrators set.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await unpaidInvoices(db);
  await sql`
    create table payment_events (
      provider text not null check (provider in ('stripe', 'generic')),
      event_id text collate "C" not null check (length(event_id) between 1 and 255),
      event_type text not null,
      kind text not null check (kind in ('payment', 'refund', 'refund_failed')),
      claimed_invoice text check (claimed_invoice is not null or outcome = 'unmatched'),
      invoice_number text collate "C" references invoices (number),
      reference text collate "C" not null check (length(reference) between 1 and 128),
      currency text not null,
      amount_cents numeric not null,
      is_partial boolean not null,
      outcome text not null,
      occurred_at timestamptz not null,
      recorded_at timestamptz not null default now(),
      primary key (provider, event_id)
    )`.execute(db);
  await sql`create index payment_events_reference on payment_events (provider, reference)`.execute(db);
  await sql`
    create index payment_events_refused on payment_events (recorded_at) where outcome not in ('applied', 'already', 'unmatched')`.execute(
    db,
  );
  await sql`create index payment_events_recorded on payment_events (recorded_at)`.execute(db);
  await sql`create index payment_events_claimed on payment_events (claimed_invoice, recorded_at)`.execute(db);
  await sql`create index invoice_payments_reference on invoice_payments (reference)`.execute(db);
  await sql`
    create table overdue_notices (
      invoice_number text collate "C" not null references invoices (number),
      notice text not null,
      blocks_at timestamptz not null,
      recorded_at timestamptz not null,
      primary key (invoice_number, notice)
    )`.execute(db);
  await sql`
    create table overdue_waivers (
      invoice_number text collate "C" primary key references invoices (number),
      recorded_at timestamptz not null default now()
    )`.execute(db);
  // Refunds of other business at the provider name no invoice: what retention removes of them is of no payment by then.
  await sql`
    create index payment_events_unmatched on payment_events (recorded_at) where outcome = 'unmatched'`.execute(
    db,
  );
  await sql`create trigger no_update before update on payment_events for each row execute function refuse_change()`.execute(
    db,
  );
  await sql`
    create trigger no_delete before delete on payment_events for each row
    when (old.outcome <> 'unmatched' or old.recorded_at >=
      coalesce(nullif(current_setting('slipway.retire_before', true), '')::timestamptz, '-infinity'))
    execute function refuse_change()`.execute(db);
  for (const name of ["overdue_notices", "overdue_waivers"]) {
    await sql`
      create trigger no_change before update or delete on ${sql.table(name)} for each row execute function refuse_change()`.execute(
      db,
    );
  }
  for (const name of ["payment_events", "overdue_notices", "overdue_waivers"]) {
    const table = sql.table(name);
    await sql`create trigger no_truncate before truncate on ${table} execute function refuse_change()`.execute(
      db,
    );
  }
  await sql`
    create table overdue_blocks (
      organization_id text collate "C" primary key references organizations (id) on delete cascade,
      invoice_number text collate "C" not null references invoices (number),
      blocked_at timestamptz not null
    )`.execute(db);
}

/**
 * Invoices of which something is open, so that no round reads those of the past. Rows follow what is recorded of an invoice, in its transaction,
 * whichever process or release records it.
 */
async function unpaidInvoices(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table unpaid_invoices (
      invoice_number text collate "C" primary key references invoices (number),
      organization_id text collate "C" not null,
      due_at timestamptz not null
    )`.execute(db);
  await sql`create index unpaid_invoices_due on unpaid_invoices (organization_id, due_at)`.execute(db);
  await sql`
    create function open_cents(invoice_number text) returns numeric language sql stable as $$
      select i.total_cents
        - coalesce((select sum(case kind when 'payment' then amount_cents else -amount_cents end)
          from invoice_payments p where p.invoice_number = i.number), 0)
        - coalesce((select sum(total_cents) from credit_notes c where c.invoice_number = i.number), 0)
      from invoices i where i.number = open_cents.invoice_number $$`.execute(db);
  await sql`
    create function track_unpaid() returns trigger language plpgsql set search_path from current as $$
    declare changed text := to_jsonb(new) ->> tg_argv[0];
    begin
      if open_cents(changed) > 0 then
        insert into unpaid_invoices select number, organization_id, due_at from invoices where number = changed
        on conflict do nothing;
      else
        delete from unpaid_invoices where invoice_number = changed;
      end if;
      return null;
    end $$`.execute(db);
  for (const [name, number] of [
    ["invoices", "number"],
    ["invoice_payments", "invoice_number"],
    ["credit_notes", "invoice_number"],
  ] as const) {
    await sql`
      create trigger track_unpaid after insert on ${sql.table(name)} for each row execute function track_unpaid(${sql.lit(number)})`.execute(
      db,
    );
  }
  await sql`
    insert into unpaid_invoices select number, organization_id, due_at from invoices where open_cents(number) > 0`.execute(
    db,
  );
}
