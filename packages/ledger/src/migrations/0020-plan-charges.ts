import { type Kysely, sql } from "kysely";

/**
 * Charges of plans, with the prices by date that they were computed from, and up to when that was done for each project. They are not in `charges`:
 * a release that knows no credits would add them there.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table price_lists (
      from_at timestamptz primary key check (from_at = date_trunc('milliseconds', from_at)),
      plans jsonb not null,
      gb_hour text not null,
      recorded_at timestamptz not null default now()
    )`.execute(db);
  await sql`
    create table plan_charges (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      project_uid text collate "C" not null,
      key text collate "C" primary key,
      kind text not null check (kind in ('instance_hour', 'storage_hour', 'term', 'credit')),
      starts_at timestamptz not null,
      ends_at timestamptz not null,
      final_at timestamptz not null,
      cycle_start date not null,
      plan text,
      instance integer,
      gb integer,
      price numeric not null check (price >= 0 and price < 1e18),
      amount numeric not null check (amount > 0 and amount < 1e24),
      recorded_at timestamptz not null default now(),
      constraint key_of_fact check (starts_with(key, project_uid || '/' || kind || '/')),
      constraint times_in_order check (starts_at < ends_at and final_at <= ends_at),
      constraint cycle_of_start check (cycle_start = billing_cycle(starts_at)),
      constraint amount_of_price check (case kind
        when 'storage_hour' then amount = gb * price and plan is null and instance is null
        when 'credit' then amount <= price and plan is not null and instance is not null and gb is null
        else amount = price and plan is not null and instance is not null and gb is null end)
    )`.execute(db);
  await sql`
    create index plan_charges_cycle on plan_charges (organization_id, cycle_start, project_id) include (kind, starts_at, amount)`.execute(
    db,
  );
  await sql`
    create table plan_meters (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      project_uid text collate "C" primary key,
      deleted boolean not null default false,
      metered_until timestamptz,
      ended boolean not null default false
    )`.execute(db);
  // What is found in histories without reading all of them.
  await sql`create index plan_meters_open on plan_meters (project_uid) where not deleted`.execute(db);
  await sql`create index plan_meters_unmetered on plan_meters (project_uid) where not ended`.execute(db);
  await sql`
    create function note_history() returns trigger language plpgsql as $$
    begin
      insert into plan_meters (organization_id, project_id, project_uid, deleted)
        values (new.organization_id, new.project_id, new.project_uid, new.deleted)
        on conflict (project_uid) do update set deleted = true where excluded.deleted;
      return null;
    end $$`.execute(db);
  await sql`
    create trigger note_history after insert on billable_changes for each row execute function note_history()`.execute(
    db,
  );
  await sql`
    create function refuse_past_prices() returns trigger language plpgsql as $$
    begin
      if new.from_at < clock_timestamp() - interval '1 minute'
        or exists (select from price_lists where from_at >= new.from_at) then
        raise exception 'prices of the past are not changed'
          using errcode = 'check_violation', constraint = 'prices_of_the_past';
      end if;
      return new;
    end $$`.execute(db);
  await sql`
    create trigger prices_of_the_past before insert on price_lists for each row execute function refuse_past_prices()`.execute(
    db,
  );
  for (const [name, column] of [
    ["price_lists", "from_at"],
    ["plan_charges", "final_at"],
  ] as const) {
    const table = sql.table(name);
    await sql`
      create trigger nothing_ahead before insert on ${table} for each row
        execute function refuse_ahead(${sql.lit(column)})`.execute(db);
    await sql`
      create trigger no_change before update or delete on ${table} for each row execute function refuse_change()`.execute(
      db,
    );
    await sql`create trigger no_truncate before truncate on ${table} execute function refuse_change()`.execute(
      db,
    );
  }
}
