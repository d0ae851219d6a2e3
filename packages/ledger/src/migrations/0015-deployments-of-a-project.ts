import { type Kysely, sql } from "kysely";

/**
 * Whose deployment it is: a name may be given again after a deletion. Rows of earlier versions, and those that one writes while it
 * still runs, have none.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table deployments add column project_uid text`.execute(db);
}
