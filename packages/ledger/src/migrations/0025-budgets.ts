import { type Kysely, sql } from "kysely";

/**
 * Budgets of organizations, and which of their thresholds a billing cycle's charges have reached. A crossing is a row that stays as it is: it is
 * recorded with its event, and found again it is recorded no more.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Over all organizations, so that a budget that is removed and set again has another revision than before.
  await sql`create sequence budget_revisions`.execute(db);
  await sql`
    create table budgets (
      organization_id text collate "C" primary key,
      amount numeric not null check (amount > 0),
      notices integer[] not null,
      hard_cap boolean not null,
      revision bigint not null default nextval('budget_revisions'),
      revised_at timestamptz not null default now(),
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    )`.execute(db);
  await sql`
    create table budget_crossings (
      organization_id text collate "C" not null,
      cycle_start date not null,
      revision bigint not null,
      threshold integer not null check (threshold > 0),
      amount numeric not null,
      spent numeric not null,
      reached_at timestamptz not null default now(),
      primary key (organization_id, cycle_start, revision, threshold)
    )`.execute(db);
  const table = sql.table("budget_crossings");
  await sql`
    create trigger no_change before update or delete on ${table} for each row execute function refuse_change()`.execute(
    db,
  );
  await sql`create trigger no_truncate before truncate on ${table} execute function refuse_change()`.execute(
    db,
  );
}
