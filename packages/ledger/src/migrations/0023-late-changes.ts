import { type Kysely, sql } from "kysely";

/**
 * Changes that came after the charges of their time were recorded, and what differs by them: a change is marked as late when it is inserted,
 * under the lock of the row that says up to when its project is metered, so that no window is computed without it and recorded after it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table billable_changes
      add column late boolean not null default false,
      add column arrival bigint not null default 0`.execute(db);
  await sql`create index billable_changes_arrival on billable_changes (project_uid, arrival)`.execute(db);
  await sql`
    alter table plan_meters
      add column arrivals bigint not null default 0,
      add column late_from timestamptz,
      add column late_arrival bigint,
      add column adjustments integer not null default 0`.execute(db);
  await sql`create index plan_meters_late on plan_meters (project_uid) where late_from is not null`.execute(
    db,
  );
  await sql`
    create or replace function note_history() returns trigger language plpgsql as $$
    declare
      meter record;
    begin
      perform from plan_meters where project_uid = new.project_uid for update;
      if not found then
        insert into plan_meters (organization_id, project_id, project_uid)
          values (new.organization_id, new.project_id, new.project_uid) on conflict do nothing;
        perform from plan_meters where project_uid = new.project_uid for update;
      end if;
      -- One that is there already is left out by the statement's conflict clause. Under the lock no other process inserts it meanwhile.
      if exists (select from billable_changes where project_uid = new.project_uid and number = new.number) then
        return new;
      end if;
      update plan_meters m set
          deleted = m.deleted or new.deleted,
          arrivals = m.arrivals + 1,
          late_from = case when new.at < m.metered_until then least(m.late_from, new.at) else m.late_from end,
          late_arrival = case when new.at < m.metered_until then m.arrivals + 1 else m.late_arrival end
        where project_uid = new.project_uid
        returning arrivals, coalesce(new.at < metered_until, false) as late into meter;
      new.arrival := meter.arrivals;
      new.late := meter.late;
      return new;
    end $$`.execute(db);
  // Before the insert in place of after it, by the same name: a trigger that is dropped would be a migration that takes something away.
  await sql`
    create or replace trigger note_history before insert on billable_changes for each row execute function note_history()`.execute(
    db,
  );
  await sql`
    alter table plan_charges
      add column adjusts text collate "C",
      add column late_at timestamptz,
      drop constraint cycle_of_start,
      drop constraint amount_of_price,
      add constraint cycle_of_start check (cycle_start = billing_cycle(coalesce(late_at, starts_at))),
      add constraint adjusts_own_fact check (case when adjusts is null then late_at is null else late_at is not null
        and starts_with(adjusts, project_uid || '/') and starts_with(key, project_uid || '/' || kind || '/late/') end),
      add constraint amount_of_price check (adjusts is not null or case kind
        when 'storage_hour' then amount = gb * price and plan is null and instance is null
        when 'credit' then amount <= price and plan is not null and instance is not null and gb is null
        else amount = price and plan is not null and instance is not null and gb is null end)`.execute(db);
  // Those of an organization's cycles, which are few: a forecast leaves them out.
  await sql`
    create index plan_charges_adjusting on plan_charges (organization_id, cycle_start)
      include (kind, project_id, starts_at, amount) where adjusts is not null`.execute(db);
}
