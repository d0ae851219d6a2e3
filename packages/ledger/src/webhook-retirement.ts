import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { giveUpDeliveries, lockWebhook } from "./webhook-locks.ts";

/** Removal of what need not be kept of webhooks. */

/** What is kept of deliveries that have ended. */
export interface DeliveryRetention {
  days: number;
  perOrganization: number;
}

/** Most rows that one call deletes of each sort. */
const STEP_ROWS = 5_000;

/** Ids of events that were left out are kept for longer than an event may be old. */
const SKIPPED_AGE = "3 days";

/**
 * Deletes deliveries that ended too long ago or are too many. What is locked is left for the next call.
 * @returns whether there may be more
 */
export async function retireWebhookDeliveries(
  ledger: Ledger,
  { days, perOrganization }: DeliveryRetention,
  stepRows = STEP_ROWS,
): Promise<boolean> {
  const { rows } = await sql<{ old: number; surplus: number; skipped: number; confirmations: number }>`
    with old as (
      delete from webhook_deliveries where sequence in (
        select sequence from webhook_deliveries
        where finished_at < now() - ${days}::int * interval '1 day' and status <> 'pending'
        order by finished_at limit ${stepRows} for update skip locked)
      returning sequence
    ), crowded as (
      select organization_id from webhook_deliveries group by 1 having count(*) > ${perOrganization}
    ), excess as (
      select sequence from crowded c cross join lateral (
        select sequence, status from webhook_deliveries d where d.organization_id = c.organization_id
        order by created_at desc, sequence desc offset ${perOrganization}
      ) d where status <> 'pending' limit ${stepRows}
    ), surplus as (
      delete from webhook_deliveries where sequence in (
        select d.sequence from webhook_deliveries d join excess using (sequence)
        where d.status <> 'pending' and d.finished_at >= now() - ${days}::int * interval '1 day'
        for update of d skip locked)
      returning sequence
    ), skipped as (
      delete from webhook_skipped_events where (organization_id, event_id) in (
        select organization_id, event_id from webhook_skipped_events
        where created_at < now() - ${SKIPPED_AGE}::interval limit ${stepRows})
      returning event_id
    ), confirmations as (
      delete from email_confirmations where sequence in (
        select sequence from email_confirmations
        where created_at < now() - interval '1 day' order by created_at limit ${stepRows})
      returning sequence
    )
    select (select count(*)::int from old) as old, (select count(*)::int from surplus) as surplus,
      (select count(*)::int from skipped) as skipped,
      (select count(*)::int from confirmations) as confirmations`.execute(ledger);
  return rows.some((counts) => Object.values(counts).some((count) => count >= stepRows));
}

/** Ends what waits for webhooks that are disabled. @returns how many webhooks had something */
export async function giveUpDisabledWebhooks(ledger: Ledger): Promise<number> {
  const { rows } = await sql<{ id: string; organizationId: string }>`
    select w.id, w.organization_id as "organizationId" from webhooks w
    where w.disabled_at is not null and exists (
      select from webhook_deliveries d where d.webhook_id = w.id and d.status = 'pending')`.execute(ledger);
  for (const { id, organizationId } of rows) {
    await ledger.transaction().execute(async (tx) => {
      const webhook = await lockWebhook(tx, organizationId, id);
      if (webhook?.disabled_at) {
        await giveUpDeliveries(tx, id);
      }
    });
  }
  return rows.length;
}
