import { createHash } from "node:crypto";
import type { EventType } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import type { Webhook } from "./schema.ts";

/** Events of which organizations are notified: recorded as one delivery for each webhook that subscribes to them. */

/** Sent on request alone. */
export const TEST_EVENT = "webhook.test";

/** Something that happened once. */
export interface NotificationEvent {
  organizationId: string;
  /** What names it among the organization's events of its type, however often and by whomever it is observed. */
  key: string;
  type: EventType | typeof TEST_EVENT;
  projectId: string | null;
  occurredAt: Date;
  /** Members of the payload's `data`. */
  data: Readonly<Record<string, unknown>>;
  /** No other one of its type and project is sent to a webhook for so long. */
  quietSeconds?: number;
}

/** Bounds of one organization. */
export interface EventLimits {
  /** Deliveries that begin in an hour, over all of its webhooks. */
  perHour: number;
  /** Deliveries that wait. */
  pending: number;
}

export const EVENT_LIMITS: EventLimits = { perHour: 500, pending: 5_000 };

/** Events of longer ago are not recorded: a delivery of them may have been forgotten by now. */
const NEWS = "2 days";

/** The id of an event, which every delivery of it has. */
export function eventIdOf({
  organizationId,
  type,
  key,
}: Pick<NotificationEvent, "organizationId" | "type" | "key">) {
  const hash = createHash("sha256")
    .update(JSON.stringify([organizationId, type, key]))
    .digest("hex");
  return `evt_${hash.slice(0, 32)}`;
}

/** What is sent, by the rules of Standard Webhooks. Pure. */
export function payloadOf({ type, occurredAt, organizationId, projectId, data }: NotificationEvent): string {
  const about = { organization_id: organizationId, ...(projectId === null ? {} : { project_id: projectId }) };
  return JSON.stringify({ type, timestamp: occurredAt.toISOString(), data: { ...about, ...data } });
}

/**
 * Records an event for every webhook of its organization that subscribes to it and existed when it happened. Recorded again it changes
 * nothing. Nothing is written for an organization without such a webhook. In the transaction of what the event is about, they are
 * recorded together or not at all.
 * @returns how many deliveries it began
 */
export async function recordEvent(
  ledger: Ledger,
  event: NotificationEvent,
  limits: EventLimits = EVENT_LIMITS,
): Promise<number> {
  const { organizationId, type, projectId, occurredAt, quietSeconds = 0 } = event;
  const eventId = eventIdOf(event);
  const { rows } = await sql<{ id: string }>`
    select w.id from webhooks w
    where w.organization_id = ${organizationId} and w.disabled_at is null and ${type} = any (w.event_types)
      and (w.project_ids is null or ${projectId}::text = any (w.project_ids))
      and w.created_at <= ${occurredAt}::timestamptz + interval '1 second'
      and ${occurredAt}::timestamptz > now() - ${NEWS}::interval
      and not exists (
        select from webhook_deliveries d where d.webhook_id = w.id and (d.event_id = ${eventId} or (
          ${quietSeconds}::int > 0 and d.event_type = ${type} and d.project_id is not distinct from ${projectId}
          and d.created_at > now() - ${quietSeconds}::int * interval '1 second')))`.execute(ledger);
  const webhooks = rows.map(({ id }) => id);
  return webhooks.length === 0 ? 0 : begin(ledger, event, webhooks, limits);
}

/**
 * Records an event for one webhook, whatever it subscribes to.
 * @returns the id of its delivery; undefined when a bound is reached
 */
export async function recordEventFor(
  ledger: Ledger,
  webhook: Pick<Webhook, "id">,
  event: NotificationEvent,
  limits: EventLimits = EVENT_LIMITS,
): Promise<string | undefined> {
  const begun = await begin(ledger, event, [webhook.id], limits);
  return begun === 0 ? undefined : eventIdOf(event);
}

async function begin(
  ledger: Ledger,
  event: NotificationEvent,
  webhooks: readonly string[],
  limits: EventLimits,
): Promise<number> {
  const { organizationId, type, projectId } = event;
  const { rows } = await sql<{ recent: number; pending: number }>`
    select (select count(*)::int from webhook_deliveries
        where organization_id = ${organizationId} and created_at > now() - interval '1 hour') as recent,
      (select count(*)::int from webhook_deliveries
        where organization_id = ${organizationId} and status = 'pending') as pending`.execute(ledger);
  const { recent = 0, pending = 0 } = rows[0] ?? {};
  if (recent + webhooks.length > limits.perHour || pending + webhooks.length > limits.pending) {
    await sql`
      update webhooks set dropped_events = dropped_events + 1
      where id = any (${webhooks}::text[])`.execute(ledger);
    return 0;
  }
  const { numAffectedRows = 0n } = await sql`
    insert into webhook_deliveries (organization_id, webhook_id, event_id, event_type, project_id, payload)
    select ${organizationId}, w.id, ${eventIdOf(event)}, ${type}, ${projectId}, ${payloadOf(event)}
    from webhooks w where w.id = any (${webhooks}::text[])
    on conflict (webhook_id, event_id) do nothing`.execute(ledger);
  return Number(numAffectedRows);
}
