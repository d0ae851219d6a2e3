import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { CONFIRMATION_EVENT } from "./notification-event.ts";
import type { WebhookDelivery, WebhookDeliveryStatus } from "./schema.ts";
import { type BegunDelivery, EVENT_LIMITS } from "./webhook-events.ts";
import { inTransaction, lockWebhook, mayReceive } from "./webhook-locks.ts";
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
  limits: Omit<EventLimits, "perHour"> = EVENT_LIMITS,
): Promise<BegunDelivery | "pending" | "confirmation" | undefined> {
  return inTransaction(ledger, async (tx) => {
    const webhook = await lockWebhook(tx, organizationId, webhookId);
    const { rows } = await sql<{
      sequence: string;
      type: string;
      status: WebhookDeliveryStatus;
      waiting: number;
    }>`
      select sequence, event_type as type, status, (
        select count(*)::int from webhook_deliveries d join webhooks w on w.id = d.webhook_id
        where d.organization_id = ${organizationId} and d.status = 'pending'
          and (w.email is not null) = ${typeof webhook?.email === "string"}::boolean
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
    if (!mayReceive(webhook)) {
      return "unconfirmed";
    }
    if (found.type === CONFIRMATION_EVENT) {
      return "confirmation";
    }
    const isMail = webhook.email !== null;
    if (isMail && (await countSentMails(tx, organizationId)) >= limits.mailsPerHour) {
      return "full";
    }
    if (found.status === "pending") {
      return "pending";
    }
    if (found.waiting >= (isMail ? limits.mailsPending : limits.pending)) {
      return "full";
    }
    await sql`
      update webhook_deliveries set status = 'pending', leases = leases + 1, attempts = 0, due_at = now(), held_until = null, finished_at = null
      where sequence = ${found.sequence}`.execute(tx);
    return "queued";
  });
}

/** How often mails of an organization were sent that had an attempt in the last hour: also those that were sent again. */
async function countSentMails(ledger: Ledger, organizationId: string): Promise<number> {
  const { rows } = await sql<{ sent: number }>`
    select coalesce(sum(d.leases), 0)::int as sent from webhooks w join webhook_deliveries d on d.webhook_id = w.id
    where w.organization_id = ${organizationId} and w.email is not null
      and d.attempted_at > now() - interval '1 hour'`.execute(ledger);
  return rows[0]?.sent ?? 0;
}
