import { type Kysely, sql } from "kysely";

/** Since when an organization reserves a custom domain whose ownership it has not proved. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table domain_reservations (
      organization_id text not null,
      hostname text not null,
      first_claimed_at timestamptz not null,
      last_claimed_at timestamptz not null,
      primary key (organization_id, hostname)
    )`.execute(db);
}
