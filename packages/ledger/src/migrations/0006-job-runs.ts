import { type Kysely, sql } from "kysely";

/**
 * Runs of jobs, what they cost, and what was charged for each billing cycle. Runs, charges and logs are partitioned by
 * month (see `partitions.ts`), so that what is old goes as a whole. A unique constraint of a partitioned table holds the
 * partition's key: the checks make it follow from the run's id, so that no id stands in two partitions.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function billing_cycle(at timestamptz) returns date
      language sql immutable strict parallel safe
      return date_trunc('month', at at time zone 'UTC')::date`.execute(db);
  await sql`
    create function refuse_change() returns trigger language plpgsql as $$
    begin
      raise exception '% is append-only: % refused', tg_table_name, lower(tg_op) using errcode = 'integrity_constraint_violation';
    end $$`.execute(db);
  await runs(db);
  await sql`
    create table job_run_logs (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      id text collate "C" not null,
      scheduled_minute timestamptz not null,
      log text not null check (octet_length(log) <= 51200),
      stored_at timestamptz not null default now(),
      primary key (organization_id, project_id, id, scheduled_minute)
    ) partition by range (scheduled_minute)`.execute(db);
  await money(db);
  await appendOnly(db, "job_runs", "scheduled_minute");
  await appendOnly(db, "charges", "due_at");
  await appendOnly(db, "storage_hours", "hour_started_at");
  await appendOnly(db, "settlements");
}

/** Terminal runs. Clocks of nodes and of the control plane differ, so nothing relates `scheduled_at` to `started_at`. */
async function runs(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table job_runs (
      organization_id text collate "C" not null,
      project_id text collate "C" not null,
      project_uid text not null,
      id text collate "C" not null,
      trigger text not null check (trigger in ('schedule', 'manual')),
      scheduled_minute timestamptz not null,
      scheduled_at timestamptz not null,
      started_at timestamptz not null,
      finished_at timestamptz not null,
      billed_until timestamptz not null,
      cycle_start date not null,
      status text not null check (status in ('succeeded', 'failed', 'deadline_exceeded', 'cancelled')),
      billed_minutes integer not null check (billed_minutes between 1 and 60),
      plan text not null,
      price_per_minute numeric not null check (price_per_minute >= 0 and price_per_minute < 1e18),
      amount numeric not null,
      metrics jsonb,
      recorded_at timestamptz not null default now(),
      primary key (organization_id, project_id, id, scheduled_minute),
      constraint scheduled_minute_of_schedule check (
        scheduled_minute = to_timestamp(floor(extract(epoch from scheduled_at) / 60)::bigint * 60)
        and (trigger = 'manual' or scheduled_at = scheduled_minute)),
      constraint id_of_minute check (
        case trigger
          when 'schedule' then id = project_id || '-' || (extract(epoch from scheduled_minute) / 60)::bigint
          else starts_with(id, project_id || '-' || (extract(epoch from scheduled_minute) / 60)::bigint || '-')
            and right(id, -length(project_id) - 1) ~ '^[0-9]+-[a-z0-9]{1,10}$'
        end),
      constraint times_in_order check (started_at <= billed_until and billed_until <= finished_at),
      constraint cycle_of_start check (cycle_start = billing_cycle(started_at)),
      constraint minutes_of_times check (
        billed_minutes = least(60, greatest(1, ceil(extract(epoch from billed_until - started_at) / 60)))),
      constraint amount_of_minutes check (amount = billed_minutes * price_per_minute)
    ) partition by range (scheduled_minute)`.execute(db);
  // Lists, counts and sums of a project's cycle without the rows themselves.
  await sql`
    create index job_runs_cycle on job_runs (organization_id, project_id, cycle_start, scheduled_at, id)
      include (scheduled_minute, status, billed_minutes, amount)`.execute(db);
  // Finds the runs that started in the month after the one for which they were scheduled.
  await sql`create index job_runs_started on job_runs using brin (started_at)`.execute(db);
  await sql`create index job_runs_age on job_runs using brin (scheduled_minute)`.execute(db);
}

async function money(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table storage_hours (
      organization_id text collate "C" not null,
      project_id text not null,
      project_uid text collate "C" not null,
      hour_index integer not null check (hour_index >= 0),
      hour_started_at timestamptz not null,
      gb numeric not null check (gb >= 0 and gb < 1e12),
      price_per_gb_hour numeric not null check (price_per_gb_hour >= 0 and price_per_gb_hour < 1e18),
      amount numeric not null,
      recorded_at timestamptz not null default now(),
      primary key (organization_id, project_uid, hour_index),
      constraint amount_of_gb check (amount = gb * price_per_gb_hour)
    )`.execute(db);
  await sql`create index storage_hours_age on storage_hours using brin (hour_started_at)`.execute(db);
  // due_at follows from the key: the run's scheduled minute, or the beginning of the hour. It chooses the partition;
  // cycle_start is the cycle in which the charge arose, settle_cycle the one in whose settlement it stands.
  await sql`
    create table charges (
      organization_id text collate "C" not null,
      kind text collate "C" not null check (kind in ('job_run', 'storage')),
      project_id text collate "C" not null,
      key text collate "C" not null,
      due_at timestamptz not null,
      cycle_start date not null check (extract(day from cycle_start) = 1),
      settle_cycle date not null check (extract(day from settle_cycle) = 1),
      amount numeric not null check (amount >= 0 and amount < 1e24),
      recorded_at timestamptz not null default now(),
      primary key (organization_id, kind, project_id, key, due_at),
      check (settle_cycle >= cycle_start)
    ) partition by range (due_at)`.execute(db);
  await sql`
    create index charges_settlement on charges (settle_cycle, organization_id) include (amount)`.execute(db);
  await sql`create index charges_age on charges using brin (due_at)`.execute(db);
  await sql`
    create table billing_cycles (
      cycle_start date primary key check (extract(day from cycle_start) = 1),
      closed_at timestamptz not null default now(),
      settled_at timestamptz
    )`.execute(db);
  await sql`
    create table settlements (
      organization_id text collate "C" not null,
      cycle_start date not null references billing_cycles (cycle_start),
      carry_in numeric not null check (carry_in >= 0 and carry_in < 1),
      total numeric not null check (total >= carry_in),
      charged_cents bigint not null check (charged_cents >= 0),
      carry_out numeric not null check (carry_out >= 0 and carry_out < 1),
      settled_at timestamptz not null default now(),
      primary key (organization_id, cycle_start),
      constraint nothing_lost check (total = charged_cents + carry_out)
    )`.execute(db);
  // What was due before this has been retired: it is not taken again.
  await sql`
    create table retirements (
      one boolean primary key default true check (one),
      due_before timestamptz not null
    )`.execute(db);
}

/** Only the retention job deletes, in a transaction that says up to when (see `retention.ts`). */
async function appendOnly(db: Kysely<unknown>, table: string, age?: string): Promise<void> {
  const name = sql.table(table);
  await sql`create trigger no_update before update on ${name} for each row execute function refuse_change()`.execute(
    db,
  );
  const kept =
    age === undefined
      ? sql``
      : sql`when (old.${sql.ref(age)} >=
          coalesce(nullif(current_setting('slipway.retire_before', true), '')::timestamptz, '-infinity'))`;
  await sql`create trigger no_delete before delete on ${name} for each row ${kept} execute function refuse_change()`.execute(
    db,
  );
  await sql`create trigger no_truncate before truncate on ${name} execute function refuse_change()`.execute(
    db,
  );
}
