import { type Kysely, sql } from "kysely";

/** Who is creating under a key now, and until when that is believed without another sign of life. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table idempotency_records
      add column holder text,
      add column held_until timestamptz`.execute(db);
}
