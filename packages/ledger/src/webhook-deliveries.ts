import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import type { WebhookDelivery, WebhookDeliveryStatus } from "./schema.ts";
import { type BegunDelivery, EVENT_LIMITS } from "./webhook-events.ts";
import { inTransaction, lockWebhook } from "./webhook-locks.ts";
import type { EventLimits } from "./webhook-recording.ts";

/** The log of a webhook's deliveries. */

export interface WebhookDeliveryQuery {
  organizationId: string;
  webhookId: string;
  status?: WebhookDeliveryStatus;
  limit: number;
  offset: number;
}

/** One page, the newest first, and how many match on all pages. */
export async function listWebhookDeliveries(
  ledger: Ledger,
  { organizationId, webhookId, status, limit, offset }: WebhookDeliveryQuery,
): Promise<{ total: number; deliveries: WebhookDelivery[] }> {
  let matching = ledger
    .selectFrom("webhook_deliveries")
    .where("organization_id", "=", organizationId)
    .where("webhook_id", "=", webhookId);
  if (status !== undefined) {
    matching = matching.where("status", "=", status);
  }
  const { total } = await matching.select(sql<number>`count(*)::int`.as("total")).executeTakeFirstOrThrow();
  const deliveries = await matching
    .selectAll()
    .orderBy("sequence", "desc")
    .offset(offset)
    .limit(limit)
    .execute();
  return { total, deliveries };
}

/**
 * Has a delivery that has ended sent again, to the webhook's present URL and under the same id.
 * @returns undefined when there is none of this event
 */
export function redeliverWebhook(
  ledger: Ledger,
  { organizationId, webhookId, eventId }: { organizationId: string; webhookId: string; eventId: string },
  limits: Pick<EventLimits, "pending"> = EVENT_LIMITS,
): Promise<BegunDelivery | "pending" | undefined> {
  return inTransaction(ledger, async (tx) => {
    const webhook = await lockWebhook(tx, organizationId, webhookId);
    const { rows } = await sql<{ sequence: string; status: WebhookDeliveryStatus; waiting: number }>`
      select sequence, status, (
        select count(*)::int from webhook_deliveries where organization_id = ${organizationId} and status = 'pending'
      ) as waiting
      from webhook_deliveries
      where organization_id = ${organizationId} and webhook_id = ${webhookId} and event_id = ${eventId}
      for update`.execute(tx);
    const [found] = rows;
    if (webhook === undefined || found === undefined) {
      return undefined;
    }
    if (webhook.disabled_at !== null) {
      return "disabled";
    }
    if (found.status === "pending" || found.waiting >= limits.pending) {
      return found.status === "pending" ? "pending" : "full";
    }
    await sql`
      update webhook_deliveries set status = 'pending', leases = leases + 1, attempts = 0, due_at = now(), held_until = null, finished_at = null
      where sequence = ${found.sequence}`.execute(tx);
    return "queued";
  });
}
