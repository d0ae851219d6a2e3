import { type Kysely, sql } from "kysely";

/** The audit log by month, so that what is old goes with its partition. Ids go on; what is there is kept. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`lock table audit_log in access exclusive mode`.execute(db);
  await sql`alter table audit_log rename to audit_log_before`.execute(db);
  await sql`create sequence audit_log_ids`.execute(db);
  await sql`
    create table audit_log (
      id bigint not null default nextval('audit_log_ids'),
      at timestamptz not null default now(),
      organization_id text,
      actor text not null,
      operation text not null,
      project_id text,
      source_ip text,
      status integer,
      code text,
      finished_at timestamptz,
      constraint audit_log_key primary key (id, at)
    ) partition by range (at)`.execute(db);
  await sql`
    do $$
    declare month timestamp;
    begin
      for month in
        select date_trunc('month', at at time zone 'UTC') from audit_log_before
        union select date_trunc('month', now() at time zone 'UTC')
        union select date_trunc('month', now() at time zone 'UTC') + interval '1 month'
      loop
        execute format('create table %I partition of audit_log for values from (%L) to (%L)',
          'audit_log_' || to_char(month, 'YYYY_MM'),
          month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
      end loop;
    end $$`.execute(db);
  await sql`
    insert into audit_log (id, at, organization_id, actor, operation, project_id, source_ip, status, code, finished_at)
    select id, at, organization_id, actor, operation, project_id, source_ip, status, code, finished_at
    from audit_log_before`.execute(db);
  await sql`select setval('audit_log_ids', (select coalesce(max(id), 0) + 1 from audit_log), false)`.execute(
    db,
  );
  await sql`drop table audit_log_before`.execute(db);
  await sql`create index audit_log_organization on audit_log (organization_id, at)`.execute(db);
}
