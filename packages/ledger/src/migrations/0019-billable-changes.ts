import { type Kysely, sql } from "kysely";

/**
 * What each project has that is billed, and from when on: a row for each change, from which charges of plans are computed. A number that is missing
 * was recorded in a ledger that was lost; what was before it holds until the next one.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table billable_changes (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      project_uid text collate "C" not null,
      number integer not null check (number >= 1),
      at timestamptz not null check (at = date_trunc('milliseconds', at)),
      deleted boolean not null default false,
      plan text,
      payment_mode text check (payment_mode in ('hourly', 'monthly', 'yearly')),
      renews boolean,
      instances integer check (instances >= 0),
      paused boolean,
      billed_gb integer check (billed_gb >= 0),
      recorded_at timestamptz not null default now(),
      primary key (project_uid, number),
      constraint all_or_nothing check (num_nonnulls(plan, payment_mode, renews, instances, paused, billed_gb)
        = case when deleted then 0 else 6 end)
    )`.execute(db);
  await sql`create unique index billable_changes_end on billable_changes (project_uid) where deleted`.execute(
    db,
  );
  await sql`create index billable_changes_organization on billable_changes (organization_id, project_uid)`.execute(
    db,
  );
  await sql`
    create function refuse_disorder() returns trigger language plpgsql as $$
    declare
      before record;
      after record;
    begin
      -- One that is there already is left out by the statement's conflict clause.
      if exists (select from billable_changes where project_uid = new.project_uid and number = new.number) then
        return new;
      end if;
      -- Its neighbours are enough, since those that are there are in order: an insert costs the same in a long history.
      select at, deleted into before from billable_changes
        where project_uid = new.project_uid and number < new.number order by number desc limit 1;
      select at into after from billable_changes
        where project_uid = new.project_uid and number > new.number order by number limit 1;
      if before.at > new.at or before.deleted or after.at < new.at or (new.deleted and after.at is not null) then
        raise exception 'change % of % is not in order', new.number, new.project_uid
          using errcode = 'check_violation', constraint = 'in_order';
      end if;
      return new;
    end $$`.execute(db);
  const table = sql.table("billable_changes");
  await sql`create trigger in_order before insert on ${table} for each row execute function refuse_disorder()`.execute(
    db,
  );
  await sql`
    create trigger nothing_ahead before insert on ${table} for each row execute function refuse_ahead('at')`.execute(
    db,
  );
  await sql`
    create trigger no_change before update or delete on ${table} for each row execute function refuse_change()`.execute(
    db,
  );
  await sql`create trigger no_truncate before truncate on ${table} execute function refuse_change()`.execute(
    db,
  );
}
