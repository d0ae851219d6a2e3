import { type Kysely, sql } from "kysely";

/**
 * Seals of what money follows from: of the rows that were recorded in a time, a hash for each organization and table, and one of all of these and of the
 * seal before. Nothing writes to the sealed tables for it; their rows of a time are found by indexes of a few pages.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table billing_seals (
      number bigint primary key check (number >= 1),
      format integer not null check (format >= 1),
      sealed_from timestamptz not null,
      sealed_to timestamptz not null check (sealed_to > sealed_from),
      rows bigint not null check (rows > 0),
      sealed_at timestamptz not null,
      previous bytea not null check (octet_length(previous) = 32),
      hash bytea not null check (octet_length(hash) = 32)
    )`.execute(db);
  await sql`
    create table billing_seal_leaves (
      number bigint not null references billing_seals (number) deferrable initially deferred,
      relation text collate "C" not null,
      organization_id text collate "C" not null,
      part text collate "C" not null,
      rows bigint not null check (rows > 0),
      hash bytea not null check (octet_length(hash) = 32),
      primary key (number, relation, organization_id, part)
    )`.execute(db);
  for (const name of ["billing_seals", "billing_seal_leaves"]) {
    const table = sql.table(name);
    await sql`
      create trigger no_change before update or delete on ${table} for each row execute function refuse_change()`.execute(
      db,
    );
    await sql`create trigger no_truncate before truncate on ${table} execute function refuse_change()`.execute(
      db,
    );
  }
  await sql`
    create function refuse_other_seal() returns trigger language plpgsql as $$
    declare
      last record;
    begin
      select number, sealed_to, hash into last from billing_seals order by number desc limit 1;
      if new.number <> coalesce(last.number, 0) + 1 or new.sealed_from <> coalesce(last.sealed_to, '-infinity')
        or new.previous <> coalesce(last.hash, decode(repeat('00', 32), 'hex')) then
        raise exception 'seal % does not follow the last one', new.number
          using errcode = 'check_violation', constraint = 'next_seal';
      end if;
      return new;
    end $$`.execute(db);
  await sql`
    create trigger next_seal before insert on billing_seals for each row execute function refuse_other_seal()`.execute(
    db,
  );
  // A leaf is written before its seal is: none is added to one that is there.
  await sql`
    create function refuse_sealed() returns trigger language plpgsql as $$
    begin
      if exists (select from billing_seals where number = new.number) then
        raise exception 'nothing is added to a seal' using errcode = 'integrity_constraint_violation';
      end if;
      return new;
    end $$`.execute(db);
  await sql`
    create trigger nothing_added before insert on billing_seal_leaves for each row execute function refuse_sealed()`.execute(
    db,
  );
  for (const name of ["charges", "plan_charges", "billable_changes"]) {
    await sql`
      create index ${sql.ref(`${name}_recorded`)} on ${sql.table(name)} using brin (recorded_at) with (autosummarize = on)`.execute(
      db,
    );
  }
  await noteLate(db);
}

/** Since when a project waits to be adjusted, whatever made it: a late change, or charges that the ledger has otherwise. */
async function noteLate(db: Kysely<unknown>): Promise<void> {
  await sql`alter table plan_meters add column late_since timestamptz`.execute(db);
  await sql`update plan_meters set late_since = now() where late_from is not null`.execute(db);
  await sql`
    create function note_late() returns trigger language plpgsql as $$
    begin
      new.late_since := case when new.late_from is not null then coalesce(old.late_since, now()) end;
      return new;
    end $$`.execute(db);
  await sql`
    create trigger note_late before update on plan_meters for each row
      when (old.late_from is distinct from new.late_from) execute function note_late()`.execute(db);
}
