import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { eventIdOf, type NotificationEvent, payloadOf } from "./notification-event.ts";

/** The steps of recording events as deliveries. Webhooks are locked before deliveries, in the order of their ids. */

/** Bounds of one organization. Mails have their own, or a mail server that is away would take events from webhooks. */
export interface EventLimits {
  /** Deliveries that begin in an hour, over all of its webhooks. */
  perHour: number;
  /** Deliveries to webhooks that wait. */
  pending: number;
  /** Mails that begin in an hour: all organizations send by one server. */
  mailsPerHour: number;
  mailsPending: number;
}

/** One event for one webhook. */
export interface WantedDelivery {
  webhookId: string;
  event: NotificationEvent;
  /** Another one of its type and project was sent a short time before. */
  isQuiet: boolean;
  /** To a recipient of e-mail. */
  isMail: boolean;
}

/** Events of longer ago are not recorded: what became of them may have been deleted by now. */
const MAX_EVENT_AGE = "2 days";

/** Which webhooks are to get which of these events, and have not got them. */
export async function wantedDeliveries(
  ledger: Ledger,
  events: readonly NotificationEvent[],
): Promise<WantedDelivery[]> {
  const given = events.map((event, index) => ({
    index,
    organization_id: event.organizationId,
    id: eventIdOf(event),
    type: event.type,
    project_id: event.projectId,
    occurred_at: event.occurredAt,
    quiet_seconds: event.quietSeconds ?? 0,
  }));
  const { rows } = await sql<{ webhookId: string; index: number; isQuiet: boolean; isMail: boolean }>`
    select w.id as "webhookId", e.index, w.email is not null as "isMail", e.quiet_seconds > 0 and exists (
        select from webhook_deliveries d
        where d.organization_id = w.organization_id and d.webhook_id = w.id and d.event_type = e.type
          and d.project_id is not distinct from e.project_id
          and d.created_at > now() - e.quiet_seconds * interval '1 second'
      ) as "isQuiet"
    from json_to_recordset(${JSON.stringify(given)}::json) as e (index integer, organization_id text, id text,
      type text, project_id text, occurred_at timestamptz, quiet_seconds integer)
    join webhooks w on w.organization_id = e.organization_id
    where w.disabled_at is null and (w.email is null or w.confirmed_at is not null) and e.type = any (w.event_types)
      and (w.project_ids is null or e.project_id = any (w.project_ids))
      and w.subscribed_since <= e.occurred_at + interval '1 second'
      and e.occurred_at > now() - ${MAX_EVENT_AGE}::interval
      and not exists (select from webhook_deliveries d where d.webhook_id = w.id and d.event_id = e.id)
      and not exists (
        select from webhook_skipped_events s where s.organization_id = e.organization_id and s.event_id = e.id)
    order by e.index, w.id`.execute(ledger);
  return rows.flatMap(({ index, ...wanted }) => {
    const event = events[index];
    return event ? [{ ...wanted, event }] : [];
  });
}

/** Locks those of these webhooks that are enabled until the end of the transaction. */
export async function lockEnabled(
  transaction: Ledger,
  wanted: readonly WantedDelivery[],
): Promise<Set<string>> {
  const ids = [...new Set(wanted.map(({ webhookId }) => webhookId))];
  const { rows } = await sql<{ id: string }>`
    select id from webhooks where id = any (${ids}::text[]) and disabled_at is null
    order by id for no key update`.execute(transaction);
  return new Set(rows.map(({ id }) => id));
}

/** Divides deliveries into those that begin and those beyond the bounds of their organizations: an event goes to all of its webhooks, or to none, and to all of its mail's recipients, or to none. */
export async function withinLimits(
  transaction: Ledger,
  wanted: readonly WantedDelivery[],
  limits: EventLimits,
): Promise<{ begun: WantedDelivery[]; dropped: WantedDelivery[] }> {
  const counts = await countDeliveries(transaction, new Set(wanted.map(({ event }) => event.organizationId)));
  const [begun, dropped]: [WantedDelivery[], WantedDelivery[]] = [[], []];
  const ofEvents = [...Map.groupBy(wanted, ({ event }) => event).values()];
  for (const sameWay of ofEvents.flatMap((one) => [...Map.groupBy(one, ({ isMail }) => isMail).values()])) {
    const [one] = sameWay;
    const isMail = one?.isMail ?? false;
    const count = counts.get(countKey(one?.event.organizationId ?? "", isMail)) ?? { recent: 0, pending: 0 };
    const isOver =
      count.recent + sameWay.length > (isMail ? limits.mailsPerHour : limits.perHour) ||
      count.pending + sameWay.length > (isMail ? limits.mailsPending : limits.pending);
    (isOver ? dropped : begun).push(...sameWay);
    if (!isOver) {
      count.recent += sameWay.length;
      count.pending += sameWay.length;
    }
  }
  return { begun, dropped };
}

const countKey = (organizationId: string, isMail: boolean): string => `${isMail} ${organizationId}`;

/** What organizations have, of webhooks and of mails. */
async function countDeliveries(
  ledger: Ledger,
  organizations: ReadonlySet<string>,
): Promise<Map<string, { recent: number; pending: number }>> {
  const { rows } = await sql<{ id: string; isMail: boolean; recent: number; pending: number }>`
    select o.id, k.is_mail as "isMail",
      (select count(*)::int from webhook_deliveries d join webhooks w on w.id = d.webhook_id
        where d.organization_id = o.id and d.created_at > now() - interval '1 hour'
          and (w.email is not null) = k.is_mail) as recent,
      (select count(*)::int from webhook_deliveries d join webhooks w on w.id = d.webhook_id
        where d.organization_id = o.id and d.status = 'pending' and (w.email is not null) = k.is_mail) as pending
    from unnest(${[...organizations]}::text[]) o (id) cross join (values (false), (true)) k (is_mail)`.execute(
    ledger,
  );
  return new Map(rows.map(({ id, isMail, ...counts }) => [countKey(id, isMail), counts]));
}

/** @returns how many are new */
export async function insertDeliveries(
  transaction: Ledger,
  deliveries: readonly WantedDelivery[],
): Promise<number> {
  if (deliveries.length === 0) {
    return 0;
  }
  const rows = deliveries.map(({ webhookId, event }) => ({
    organization_id: event.organizationId,
    webhook_id: webhookId,
    event_id: eventIdOf(event),
    event_type: event.type,
    project_id: event.projectId,
    payload: payloadOf(event),
  }));
  const { numAffectedRows = 0n } = await sql`
    insert into webhook_deliveries (organization_id, webhook_id, event_id, event_type, project_id, payload)
    select organization_id, webhook_id, event_id, event_type, project_id, payload
    from json_to_recordset(${JSON.stringify(rows)}::json) as d (organization_id text, webhook_id text, event_id text,
      event_type text, project_id text, payload text)
    on conflict (webhook_id, event_id) do nothing`.execute(transaction);
  return Number(numAffectedRows);
}

/** Keeps the ids of events that are not sent: observed again they are not sent either. */
export async function rememberSkipped(
  transaction: Ledger,
  skipped: readonly WantedDelivery[],
): Promise<void> {
  if (skipped.length === 0) {
    return;
  }
  const rows = skipped.map(({ event }) => ({
    organization_id: event.organizationId,
    event_id: eventIdOf(event),
  }));
  await sql`
    insert into webhook_skipped_events (organization_id, event_id)
    select distinct organization_id, event_id
    from json_to_recordset(${JSON.stringify(rows)}::json) as s (organization_id text, event_id text)
    order by 1, 2 on conflict do nothing`.execute(transaction);
}

/** Counts events beyond a bound on the webhooks that do not get them; these are locked already. */
export async function countDropped(transaction: Ledger, dropped: readonly WantedDelivery[]): Promise<void> {
  if (dropped.length === 0) {
    return;
  }
  const ids = dropped.map(({ webhookId }) => webhookId);
  await sql`
    update webhooks w set dropped_events = dropped_events + d.count
    from (select id, count(*) as count from unnest(${ids}::text[]) u (id) group by 1) d
    where w.id = d.id`.execute(transaction);
}
