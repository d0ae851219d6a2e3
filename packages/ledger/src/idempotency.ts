import { type RawBuilder, sql } from "kysely";
import type { Ledger } from "./connect.ts";
import type { IdempotencyRecord } from "./schema.ts";

/*
 * Calls with one key follow one another: who creates under it holds it, for as long as it says so. A holder that dies
 * keeps the key and the project's id, and after its time the next call continues from there.
 */

/** What names a key. */
export interface KeyName {
  organizationId: string;
  key: string;
}

export interface Reservation extends KeyName {
  bodySha256: Buffer;
  /** Id the resource gets when this call is the first with the key. */
  projectId: string;
  /** Who asks. The same one may ask again for what it holds already. */
  holder: string;
  /** For how long the key is the holder's without {@link renewIdempotencyKey}. */
  holdSeconds: number;
}

const inSeconds = (seconds: number): RawBuilder<Date> => sql<Date>`now() + make_interval(secs => ${seconds})`;

/** The record of a key; undefined for one that is unused or was released. */
export async function findIdempotencyRecord(
  ledger: Ledger,
  { organizationId, key }: KeyName,
): Promise<IdempotencyRecord | undefined> {
  return ledger
    .selectFrom("idempotency_records")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .where("key", "=", key)
    .executeTakeFirst();
}

/**
 * Commits the key before anything is created, and holds it when nobody else does. All callers get the same record:
 * `project_id` names the resource, `body_sha256` distinguishes a repeat from a conflict, `holder` names who creates it now.
 */
export async function reserveIdempotencyKey(
  ledger: Ledger,
  { organizationId, key, bodySha256, projectId, holder, holdSeconds }: Reservation,
): Promise<IdempotencyRecord> {
  const isFree = sql`(
    idempotency_records.completed_at is null
    and idempotency_records.body_sha256 = excluded.body_sha256
    and (
      idempotency_records.holder is null
      or idempotency_records.holder = excluded.holder
      or idempotency_records.held_until < now()
    )
  )`;
  return ledger
    .insertInto("idempotency_records")
    .values({
      organization_id: organizationId,
      key,
      body_sha256: bodySha256,
      project_id: projectId,
      holder,
      held_until: inSeconds(holdSeconds),
    })
    .onConflict((conflict) =>
      conflict.columns(["organization_id", "key"]).doUpdateSet({
        holder: sql`case when ${isFree} then excluded.holder else idempotency_records.holder end`,
        held_until: sql`case when ${isFree} then excluded.held_until else idempotency_records.held_until end`,
      }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Holds a key for longer. @returns false when it is no longer this holder's */
export async function renewIdempotencyKey(
  ledger: Ledger,
  { organizationId, key }: KeyName,
  holder: string,
  holdSeconds: number,
): Promise<boolean> {
  const { numUpdatedRows } = await ledger
    .updateTable("idempotency_records")
    .set({ held_until: inSeconds(holdSeconds) })
    .where("organization_id", "=", organizationId)
    .where("key", "=", key)
    .where("holder", "=", holder)
    .where("completed_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * Marks the resource as created; the key names it permanently.
 * @returns false when the key does not name this resource: it was released meanwhile
 */
export async function completeIdempotencyKey(
  ledger: Ledger,
  { organizationId, key }: KeyName,
  projectId: string,
  at: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await ledger
    .updateTable("idempotency_records")
    .set({ completed_at: sql<Date>`coalesce(completed_at, ${at})`, holder: null, held_until: null })
    .where("organization_id", "=", organizationId)
    .where("key", "=", key)
    .where("project_id", "=", projectId)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Releases the key to the next call, which continues under the same id. */
export async function releaseIdempotencyKey(
  ledger: Ledger,
  { organizationId, key }: KeyName,
  holder: string,
): Promise<void> {
  await ledger
    .updateTable("idempotency_records")
    .set({ holder: null, held_until: null })
    .where("organization_id", "=", organizationId)
    .where("key", "=", key)
    .where("holder", "=", holder)
    .execute();
}

/** Deletes a key whose request left nothing behind, so that another request may use it. A completed one stays, and one of another holder. */
export async function deleteIdempotencyKey(
  ledger: Ledger,
  { organizationId, key }: KeyName,
  holder: string,
): Promise<void> {
  await ledger
    .deleteFrom("idempotency_records")
    .where("organization_id", "=", organizationId)
    .where("key", "=", key)
    .where("holder", "=", holder)
    .where("completed_at", "is", null)
    .execute();
}

/**
 * Remembers that a project was deleted, which distinguishes its repeated deletion from that of a project that never existed.
 * @param name what it was called, for the usage that it leaves
 */
export async function insertTombstone(
  ledger: Ledger,
  organizationId: string,
  projectId: string,
  name: string,
): Promise<void> {
  const project = { organization_id: organizationId, project_id: projectId };
  await ledger
    .with("remembered", (db) =>
      db
        .insertInto("project_tombstones")
        .values(project)
        .onConflict((conflict) => conflict.doNothing()),
    )
    .insertInto("deleted_project_names")
    .values({ ...project, name })
    .onConflict((conflict) => conflict.columns(["organization_id", "project_id"]).doUpdateSet({ name }))
    .execute();
}

export async function hasTombstone(
  ledger: Ledger,
  organizationId: string,
  projectId: string,
): Promise<boolean> {
  const row = await ledger
    .selectFrom("project_tombstones")
    .select("project_id")
    .where("organization_id", "=", organizationId)
    .where("project_id", "=", projectId)
    .executeTakeFirst();
  return row !== undefined;
}
