import { type Kysely, sql } from "kysely";

/**
 * Charges of what projects use beside their plans, which are charges as those of plans are: in the same sums, and on the same invoices. Builds that
 * ended are noted in the transaction that ends them, since their history forgets them, with the time in which their containers ran.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table price_lists add column resources jsonb not null default '{}'`.execute(db);
  // What is there has the narrower constraints: it is not read again for these.
  await sql`
    alter table plan_charges
      add column quantity numeric,
      drop constraint plan_charges_kind_check,
      drop constraint amount_of_price,
      add constraint plan_charges_kind_check
        check (kind in ('instance_hour', 'storage_hour', 'term', 'credit', 'build_minute')) not valid,
      add constraint quantity_of_resources
        check (case when kind = 'build_minute' then (quantity > 0) is true else quantity is null end) not valid,
      add constraint amount_of_price check (adjusts is not null or case
        when kind = 'storage_hour' then amount = gb * price and plan is null and instance is null
        when kind = 'credit' then amount <= price and plan is not null and instance is not null and gb is null
        when quantity is not null then amount = quantity * price and plan is null and instance is null and gb is null
        else amount = price and plan is not null and instance is not null and gb is null end) not valid`.execute(
    db,
  );
  await sql`
    alter table invoice_lines
      drop constraint invoice_lines_kind_check,
      add constraint invoice_lines_kind_check check (kind in ('job_run', 'storage', 'instance_hour', 'storage_hour', 'term',
        'credit', 'build_minute')) not valid`.execute(db);
  await sql`alter table builds add column ran_from timestamptz, add column ran_until timestamptz`.execute(db);
  await sql`
    create table ended_builds (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      project_uid text collate "C" not null,
      build_id text collate "C" not null,
      ran_from timestamptz not null,
      ran_until timestamptz not null,
      error_code text,
      noted_at timestamptz not null default now(),
      refused_at timestamptz,
      primary key (organization_id, project_id, build_id)
    )`.execute(db);
  await sql`create index ended_builds_age on ended_builds (noted_at)`.execute(db);
  // It refuses nothing: a build ends, whatever is charged for it.
  await sql`
    create function note_ended_build() returns trigger language plpgsql as $$
    begin
      if exists (select from price_lists where resources -> 'buildMinute' is not null) then
        insert into ended_builds (organization_id, project_id, project_uid, build_id, ran_from, ran_until, error_code)
          values (new.organization_id, new.project_id, new.project_uid, new.id, new.ran_from, new.ran_until, new.error_code)
          on conflict do nothing;
      end if;
      return null;
    end $$`.execute(db);
  await sql`
    create trigger note_ended_build after insert or update of finished_at on builds for each row
      when (new.finished_at is not null and new.ran_from is not null and new.ran_until is not null) execute function note_ended_build()`.execute(
    db,
  );
}
