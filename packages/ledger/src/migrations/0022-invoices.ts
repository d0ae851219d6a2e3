import { type Kysely, sql } from "kysely";

/**
 * Invoices, and what corrects and pays them. An invoice is written in one transaction: its charges, its lines, and last itself with its number,
 * after which nothing can be added. Numbers come from a row that is locked until that transaction ends, so none is missing.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await begin(db);
  await facts(db);
  await numbers(db);
  await invoices(db);
  await payments(db);
  await creditNotes(db);
  await keepCharges(db);
  for (const name of [
    "invoicing",
    "invoice_cycles",
    "invoices",
    "invoice_lines",
    "invoice_payments",
    "credit_notes",
  ]) {
    const table = sql.table(name);
    await sql`
      create trigger no_change before update or delete on ${table} for each row execute function refuse_change()`.execute(
      db,
    );
    await sql`create trigger no_truncate before truncate on ${table} execute function refuse_change()`.execute(
      db,
    );
  }
}

/**
 * As the ledger's other charges: only a transaction that says up to when deletes, of cycles that ended before. An invoice reads again what was
 * recorded up to an hour before the one before it, and leaves out what it finds here: so those stay until there is one that does not read them.
 * Another hour is what the transaction of their own invoice may have taken since its time.
 */
async function keepCharges(db: Kysely<unknown>): Promise<void> {
  await sql`
    create trigger no_update before update on invoice_charges for each row execute function refuse_change()`.execute(
    db,
  );
  await sql`
    create trigger no_delete before delete on invoice_charges for each row
      when ((old.cycle_start + interval '1 month') at time zone 'UTC' >
        coalesce(nullif(current_setting('slipway.retire_before', true), '')::timestamptz, '-infinity'))
      execute function refuse_change()`.execute(db);
  await sql`
    create function refuse_charges_still_read() returns trigger language plpgsql as $$
    begin
      if exists (
        select from (select distinct organization_id, cycle_start from deleted) d
          left join invoices i using (organization_id, cycle_start)
          left join lateral (select issued_at from invoices where organization_id = d.organization_id
            order by cycle_start desc limit 1) last on true
        where (last.issued_at > i.issued_at + interval '2 hours') is not true) then
        raise exception 'charges of an invoice are kept until a later one no longer reads them'
          using errcode = 'integrity_constraint_violation';
      end if;
      return null;
    end $$`.execute(db);
  await sql`
    create trigger no_delete_while_read after delete on invoice_charges referencing old table as deleted
      for each statement execute function refuse_charges_still_read()`.execute(db);
  await sql`create trigger no_truncate before truncate on invoice_charges execute function refuse_change()`.execute(
    db,
  );
}

/** From when on there are invoices, which cycles have theirs, and where organizations are taxed. */
async function begin(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table invoicing (
      one boolean primary key default true check (one),
      first_cycle date not null check (extract(day from first_cycle) = 1),
      begun_at timestamptz not null default now()
    )`.execute(db);
  await sql`
    create table invoice_cycles (
      cycle_start date primary key references billing_cycles (cycle_start),
      issued_at timestamptz not null default now()
    )`.execute(db);
  await sql`
    create table organization_countries (
      organization_id text collate "C" primary key references organizations (id),
      country text not null check (country ~ '^[A-Z]{2}$'),
      set_at timestamptz not null default now()
    )`.execute(db);
}

/** In which cycle a fact of plans began, by its key: that of its own charge, and of what adjusts it. A credit belongs to its term. */
async function facts(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function cycle_of_fact(fact text, starts_at timestamptz) returns date language sql immutable strict
      return billing_cycle(case split_part(fact, '/', 2)
        when 'credit' then to_timestamp(split_part(fact, '/', 3)::bigint / 1000.0) else starts_at end)`.execute(
    db,
  );
  // What came after the end of its cycle, which is little: an invoice reads these without all that was charged.
  await sql`
    create index plan_charges_late on plan_charges (organization_id, recorded_at)
      where recorded_at at time zone 'UTC' >= cycle_start + interval '1 month'`.execute(db);
}

async function numbers(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table document_numbers (
      series text not null check (series in ('invoice', 'credit_note')),
      year integer not null,
      last integer not null check (last >= 1),
      primary key (series, year)
    )`.execute(db);
  await sql`
    create function refuse_gap() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' and new.last = 1
        or tg_op = 'UPDATE' and (new.series, new.year, new.last) = (old.series, old.year, old.last + 1) then
        return new;
      end if;
      raise exception 'numbers of documents have no gaps: % refused', lower(tg_op) using errcode = 'integrity_constraint_violation';
    end $$`.execute(db);
  await sql`
    create trigger no_gap before insert or update or delete on document_numbers for each row execute function refuse_gap()`.execute(
    db,
  );
  await sql`create trigger no_truncate before truncate on document_numbers execute function refuse_change()`.execute(
    db,
  );
  // A number that is counted is that of a document, at the latest when its transaction commits.
  await sql`
    create function refuse_unused_number() returns trigger language plpgsql as $$
    declare
      given text := document_number(new.series, new.year, new.last);
    begin
      if not exists (select from invoices where number = given)
          and not exists (select from credit_notes where number = given) then
        raise exception 'no document has the number %', given using errcode = 'integrity_constraint_violation';
      end if;
      return null;
    end $$`.execute(db);
  await sql`
    create constraint trigger no_unused_number after insert or update on document_numbers deferrable initially deferred
      for each row execute function refuse_unused_number()`.execute(db);
  await sql`
    create function document_number(series text, year integer, number integer) returns text language sql immutable strict
      return case series when 'credit_note' then 'CN-' else '' end || year || '-' || lpad(number::text, greatest(6, length(number::text)), '0')`.execute(
    db,
  );
  await sql`
    create function refuse_other_number() returns trigger language plpgsql as $$
    declare
      issued integer := extract(year from new.issued_at at time zone 'UTC');
    begin
      if new.number is distinct from (select document_number(series, year, last) from document_numbers
          where series = tg_argv[0] and year = issued) then
        raise exception '% is not the next number of its series', new.number
          using errcode = 'check_violation', constraint = 'next_number';
      end if;
      return new;
    end $$`.execute(db);
}

async function invoices(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table invoices (
      organization_id text collate "C" not null,
      cycle_start date not null references billing_cycles (cycle_start),
      number text collate "C" not null unique check (number ~ '^[0-9]{4}-[0-9]{6,}$'),
      organization_name text not null,
      issuer text not null,
      country text,
      currency text not null,
      issued_at timestamptz not null default now(),
      due_at timestamptz not null,
      line_count integer not null check (line_count >= 1),
      charge_count integer not null check (charge_count >= line_count),
      carry_in numeric not null check (carry_in < 1),
      subtotal numeric not null,
      net_cents bigint not null check (net_cents >= 0),
      carry_out numeric not null check (carry_out < 1),
      taxes jsonb not null check (jsonb_typeof(taxes) = 'array'),
      tax_cents bigint not null check (tax_cents >= 0),
      total_cents bigint not null,
      primary key (organization_id, cycle_start),
      constraint due_later check (due_at >= issued_at),
      constraint nothing_lost check (carry_in + subtotal = net_cents + carry_out),
      constraint credit_is_carried check (carry_out >= 0 or net_cents = 0),
      constraint total_of_parts check (total_cents = net_cents + tax_cents)
    )`.execute(db);
  await sql`
    create table invoice_lines (
      organization_id text collate "C" not null,
      cycle_start date not null,
      line integer not null check (line >= 1),
      project_id text collate "C" not null,
      kind text not null check (kind in ('job_run', 'storage', 'instance_hour', 'storage_hour', 'term', 'credit')),
      plan text,
      quantity numeric not null check (quantity > 0),
      unit_price numeric not null,
      amount numeric not null,
      charge_count integer not null check (charge_count >= 1),
      adjusts boolean not null default false,
      primary key (organization_id, cycle_start, line),
      foreign key (organization_id, cycle_start) references invoices deferrable initially deferred,
      constraint amount_of_quantity check (amount = quantity * unit_price)
    )`.execute(db);
  await sql`
    create table invoice_charges (
      organization_id text collate "C" not null,
      charge_key text collate "C" not null,
      cycle_start date not null,
      line integer not null,
      at timestamptz not null,
      quantity numeric not null check (quantity > 0),
      amount numeric not null,
      primary key (organization_id, charge_key),
      foreign key (organization_id, cycle_start, line) references invoice_lines deferrable initially deferred
    )`.execute(db);
  await sql`
    create index invoice_charges_line on invoice_charges (organization_id, cycle_start, line, at, charge_key)`.execute(
    db,
  );
  await sql`
    create function refuse_addition() returns trigger language plpgsql as $$
    begin
      if exists (select from added join invoices using (organization_id, cycle_start)) then
        raise exception 'nothing is added to an invoice that is issued' using errcode = 'integrity_constraint_violation';
      end if;
      return null;
    end $$`.execute(db);
  for (const name of ["invoice_lines", "invoice_charges"]) {
    await sql`
      create trigger nothing_added after insert on ${sql.table(name)} referencing new table as added
        for each statement execute function refuse_addition()`.execute(db);
  }
  await sql`
    create trigger next_number before insert on invoices for each row execute function refuse_other_number('invoice')`.execute(
    db,
  );
  // Each line is the sum of its charges, and the invoice that of its lines.
  await sql`
    create function refuse_other_sum() returns trigger language plpgsql as $$
    declare
      lines record;
    begin
      select count(*) as count, coalesce(sum(amount), 0) as amount, coalesce(sum(charge_count), 0) as charges into lines
        from invoice_lines where organization_id = new.organization_id and cycle_start = new.cycle_start;
      if (lines.count, lines.amount, lines.charges) is distinct from (new.line_count::bigint, new.subtotal, new.charge_count::bigint)
        or exists (
          select from (
            select line, sum(amount) as amount, sum(quantity) as quantity, count(*) as charges from invoice_charges
            where organization_id = new.organization_id and cycle_start = new.cycle_start group by line) c
          full join (
            select * from invoice_lines where organization_id = new.organization_id and cycle_start = new.cycle_start) l using (line)
          where (c.amount, c.quantity, c.charges) is distinct from (l.amount, l.quantity, l.charge_count::bigint)) then
        raise exception 'invoice % does not add up', new.number using errcode = 'check_violation', constraint = 'sum_of_lines';
      end if;
      return new;
    end $$`.execute(db);
  await sql`create trigger sum_of_lines before insert on invoices for each row execute function refuse_other_sum()`.execute(
    db,
  );
}

/** What was paid of invoices, and which of that was given back or recorded by mistake. */
async function payments(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table invoice_payments (
      invoice_number text collate "C" not null references invoices (number),
      reference text collate "C" not null check (length(reference) between 1 and 128),
      kind text not null check (kind in ('payment', 'reversal')),
      amount_cents bigint not null check (amount_cents > 0),
      paid_at timestamptz not null,
      recorded_at timestamptz not null default now(),
      primary key (invoice_number, reference, kind)
    )`.execute(db);
  await sql`
    create trigger nothing_ahead before insert on invoice_payments for each row execute function refuse_ahead('paid_at')`.execute(
    db,
  );
}

async function creditNotes(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table credit_notes (
      number text collate "C" primary key check (number ~ '^CN-[0-9]{4}-[0-9]{6,}$'),
      invoice_number text collate "C" not null references invoices (number),
      reference text collate "C" not null check (length(reference) between 1 and 128),
      reason text not null check (length(reason) between 1 and 500),
      issued_at timestamptz not null default now(),
      net_cents bigint not null check (net_cents > 0),
      taxes jsonb not null check (jsonb_typeof(taxes) = 'array'),
      tax_cents bigint not null check (tax_cents >= 0),
      total_cents bigint not null,
      unique (invoice_number, reference),
      constraint total_of_parts check (total_cents = net_cents + tax_cents)
    )`.execute(db);
  await sql`
    create trigger next_number before insert on credit_notes for each row execute function refuse_other_number('credit_note')`.execute(
    db,
  );
  await sql`
    create function refuse_more_than_invoiced() returns trigger language plpgsql as $$
    begin
      if exists (
        select from invoices i
        where i.number = new.invoice_number and (
          i.net_cents < new.net_cents + (select coalesce(sum(net_cents), 0) from credit_notes where invoice_number = i.number)
          or i.tax_cents < new.tax_cents + (select coalesce(sum(tax_cents), 0) from credit_notes where invoice_number = i.number))) then
        raise exception 'no more is credited than invoice % has', new.invoice_number
          using errcode = 'check_violation', constraint = 'no_more_than_invoiced';
      end if;
      return new;
    end $$`.execute(db);
  await sql`
    create trigger no_more_than_invoiced before insert on credit_notes for each row execute function refuse_more_than_invoiced()`.execute(
    db,
  );
}
