import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import type { Webhook } from "./schema.ts";

/** In the transaction that is given, or in one of its own. */
export function inTransaction<T>(ledger: Ledger, run: (transaction: Ledger) => Promise<T>): Promise<T> {
  return ledger.isTransaction ? run(ledger) : ledger.transaction().execute(run);
}

/** In a transaction of its own, which is rolled back where the result is one that refuses. */
export async function committedUnless<T>(
  ledger: Ledger,
  isRefusal: (result: T) => boolean,
  run: (transaction: Ledger) => Promise<T>,
): Promise<T> {
  const refused: { result?: T } = {};
  try {
    return await ledger.transaction().execute(async (tx) => {
      const result = await run(tx);
      if (isRefusal(result)) {
        refused.result = result;
        throw new Error("what was written is refused");
      }
      return result;
    });
  } catch (error) {
    if ("result" in refused) {
      return refused.result as T;
    }
    throw error;
  }
}

/**
 * Locks an organization's webhook until the end of the transaction. Whatever changes a webhook's deliveries locks it first: so nothing waits for
 * the other in a circle, and none begins at one that is being disabled.
 * @returns undefined when it does not exist
 */
export function lockWebhook(
  transaction: Ledger,
  organizationId: string,
  id: string,
): Promise<Webhook | undefined> {
  return transaction
    .selectFrom("webhooks")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .where("id", "=", id)
    .forNoKeyUpdate()
    .executeTakeFirst();
}

/** Whether events are sent to it: to a webhook, and to a recipient of e-mail that has confirmed. Pure. */
export const mayReceive = ({ email, confirmed_at }: Pick<Webhook, "email" | "confirmed_at">): boolean =>
  email === null || confirmed_at !== null;

/** Ends every delivery of a webhook that waits, since nothing is sent to it any more. */
export async function giveUpDeliveries(ledger: Ledger, webhookId: string): Promise<void> {
  await ledger
    .updateTable("webhook_deliveries")
    .set({ status: "failed", finished_at: sql<Date>`now()`, held_until: null, error: "webhook_disabled" })
    .where("webhook_id", "=", webhookId)
    .where("status", "=", "pending")
    .execute();
}
