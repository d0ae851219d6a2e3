import { type Kysely, sql } from "kysely";

/** Tokens of a user that the platform issued up to this moment are refused. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table users add column tokens_revoked_at timestamptz`.execute(db);
}
