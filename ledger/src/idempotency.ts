import type { Ledger } from "./connect.ts";
import type { IdempotencyRecord } from "./schema.ts";

export interface Reservation {
  organizationId: string;
  key: string;
  bodySha256: Buffer;
  /** Id the resource gets when this call is the first with the key. */
  projectId: string;
}

/**
 * Commits the key before anything is created. Of calls at the same time exactly one inserts; all get the same record,
 * whose `project_id` names the resource and whose `body_sha256` tells a repeat from a conflict.
 */
export async function reserveIdempotencyKey(
  ledger: Ledger,
  reservation: Reservation,
): Promise<IdempotencyRecord> {
  return ledger
    .insertInto("idempotency_records")
    .values({
      organization_id: reservation.organizationId,
      key: reservation.key,
      body_sha256: reservation.bodySha256,
      project_id: reservation.projectId,
    })
    .onConflict((conflict) =>
      // Sets a column to itself so that the existing row is returned.
      conflict
        .columns(["organization_id", "key"])
        .doUpdateSet((update) => ({ key: update.ref("idempotency_records.key") })),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Marks the resource as created; the key now stands for it for good. */
export async function completeIdempotencyKey(
  ledger: Ledger,
  organizationId: string,
  key: string,
  at: Date,
): Promise<void> {
  await ledger
    .updateTable("idempotency_records")
    .set({ completed_at: at })
    .where("organization_id", "=", organizationId)
    .where("key", "=", key)
    .where("completed_at", "is", null)
    .execute();
}

/** Frees a key whose request was refused, so that a corrected request may use it. A completed one stays. */
export async function releaseIdempotencyKey(
  ledger: Ledger,
  organizationId: string,
  key: string,
  projectId: string,
): Promise<void> {
  await ledger
    .deleteFrom("idempotency_records")
    .where("organization_id", "=", organizationId)
    .where("key", "=", key)
    .where("project_id", "=", projectId)
    .where("completed_at", "is", null)
    .execute();
}
