import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import type { WebhookDelivery, WebhookDeliveryStatus } from "./schema.ts";

/** The log of a webhook's deliveries. */

export interface WebhookDeliveryQuery {
  organizationId: string;
  webhookId: string;
  status?: WebhookDeliveryStatus;
  limit: number;
  offset: number;
}

/** One page, the newest first, and how many match on whatever page. */
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
 * Has a delivery that has ended sent again, to the webhook's present URL and under the same id. The webhook must not be disabled.
 * @returns undefined when there is none of this event
 */
export async function redeliverWebhook(
  ledger: Ledger,
  { organizationId, webhookId, eventId }: { organizationId: string; webhookId: string; eventId: string },
): Promise<"queued" | "pending" | undefined> {
  const { rows } = await sql<{ status: WebhookDeliveryStatus; queued: boolean }>`
    with found as (
      select sequence, status from webhook_deliveries
      where organization_id = ${organizationId} and webhook_id = ${webhookId} and event_id = ${eventId}
      for update
    ), queued as (
      update webhook_deliveries d set status = 'pending', attempts = 0, due_at = now(), held_until = null,
        finished_at = null
      from found where d.sequence = found.sequence and found.status <> 'pending' returning d.sequence
    )
    select status, exists (select from queued) as queued from found`.execute(ledger);
  const [row] = rows;
  return row && (row.queued ? "queued" : "pending");
}

/** What is kept of deliveries that have ended. */
export interface DeliveryRetention {
  days: number;
  perOrganization: number;
}

/** Most rows that one call deletes of each sort. */
const STEP_ROWS = 5_000;

/**
 * Deletes deliveries that have ended and are too old or too many, and those whose webhook was deleted while they were recorded.
 * @returns how many were deleted
 */
export async function retireWebhookDeliveries(
  ledger: Ledger,
  { days, perOrganization }: DeliveryRetention,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with old as (
      select sequence from webhook_deliveries
      where created_at < now() - ${days}::int * interval '1 day' and status <> 'pending' limit ${STEP_ROWS}
    ), orphaned as (
      select sequence from webhook_deliveries d
      where not exists (select from webhooks w where w.id = d.webhook_id) limit ${STEP_ROWS}
    ), crowded as (
      select organization_id from webhook_deliveries group by 1 having count(*) > ${perOrganization}
    ), surplus as (
      select sequence from crowded c cross join lateral (
        select sequence, status from webhook_deliveries d where d.organization_id = c.organization_id
        order by created_at desc, sequence desc offset ${perOrganization} limit ${STEP_ROWS}
      ) d where status <> 'pending'
    ), deleted as (
      delete from webhook_deliveries where sequence in (
        select sequence from old union select sequence from orphaned union select sequence from surplus)
      returning sequence
    )
    select count(*)::int as count from deleted`.execute(ledger);
  return rows[0]?.count ?? 0;
}
