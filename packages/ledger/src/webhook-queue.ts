import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { CONFIRMATION_EVENT } from "./notification-event.ts";
import { giveUpDeliveries, lockWebhook } from "./webhook-locks.ts";

/** Deliveries that wait to be sent to their webhooks, by whichever process has time. */

/** A delivery that a process sends. */
export interface LeasedWebhookDelivery {
  sequence: string;
  organizationId: string;
  webhookId: string;
  eventId: string;
  eventType: string;
  payload: string;
  url: string;
  /** Of a recipient of e-mail; null of a webhook. */
  mail: LeasedMail | null;
  /** One that another process has leased meanwhile has another. */
  lease: number;
  /** How many there have been before this one. */
  attempts: number;
}

/** What a mail needs beside its event. */
export interface LeasedMail {
  address: string;
  isConfirmed: boolean;
  unsubscribeToken: string;
  organizationName: string;
  /** Of a confirmation mail, while it confirms. */
  confirmationCode: string | null;
}

/** How many are sent at a time, by all processes together but for `most`. */
export interface LeaseBounds {
  /** By the one that leases. */
  most: number;
  /** To webhooks of an organization, and as many to its recipients of e-mail. */
  perOrganization: number;
  perWebhook: number;
  /** To one host, of all organizations. */
  perHost: number;
  leaseMs: number;
}

/** What waits. */
export interface WebhookBacklog {
  /** Whether there is anything to lease, or a lease that has not ended. */
  isDue: boolean;
  /**
   * For how long the webhook that waits longest has waited while nothing is sent to it, nor the whole share of its organization
   * or host: what is slow there waits for itself.
   */
  lagMs: number;
}

/** Reads what waits; while nothing is due, that costs one row of an index. */
export async function readWebhookBacklog(
  ledger: Ledger,
  { perOrganization, perHost }: Pick<LeaseBounds, "perOrganization" | "perHost">,
): Promise<WebhookBacklog> {
  const { rows } = await sql<{ isDue: boolean; lag: number | null }>`
    with waiting as materialized (
      select 1 from webhook_deliveries where status = 'pending' and due_at <= now() limit 1
    ), held as materialized (
      select d.webhook_id, d.organization_id, w.host, w.email is not null as is_mail
      from webhook_deliveries d join webhooks w on w.id = d.webhook_id
      where exists (select from waiting) and d.status = 'pending' and d.held_until > now()
    )
    select exists (select from waiting) as "isDue", (
      select extract(epoch from now() - min(d.due_at))::float8 * 1000
      from webhooks w cross join lateral (
        select due_at from webhook_deliveries
        where webhook_id = w.id and status = 'pending' and due_at <= now() order by due_at limit 1
      ) d
      where exists (select from waiting) and w.disabled_at is null
        and not exists (select from held h where h.webhook_id = w.id)
        and (select count(*) from held h where h.organization_id = w.organization_id
          and h.is_mail = (w.email is not null)) < ${perOrganization}::int
        and (select count(*) from held h where h.host = w.host) < ${perHost}::int
    ) as lag`.execute(ledger);
  const [{ isDue, lag } = { isDue: false, lag: null }] = rows;
  return { isDue, lagMs: Math.max(0, lag ?? 0) };
}

/**
 * Leases deliveries that are due: those of a process that is killed are sent by another once their lease has expired. The organization of
 * which fewest are being sent goes first. One that fails gets one place, however many it has waiting. Webhooks and mails have places of
 * their own: the mail server is slow for mails alone.
 */
export function leaseWebhookDeliveries(
  ledger: Ledger,
  bounds: LeaseBounds,
): Promise<LeasedWebhookDelivery[]> {
  const { most, perOrganization, perWebhook, perHost, leaseMs } = bounds;
  return ledger.transaction().execute(async (tx) => {
    // One after the other, or two processes would each give an organization its whole share.
    await sql`select pg_advisory_xact_lock(hashtextextended('webhook-deliveries', 1))`.execute(tx);
    const { rows } = await sql<LeasedWebhookDelivery>`
      with held as (
        select d.organization_id, d.webhook_id, w.host, w.email is not null as is_mail
        from webhook_deliveries d join webhooks w on w.id = d.webhook_id
        where d.status = 'pending' and d.held_until > now()
      ), due as (
        select d.sequence, d.due_at, w.organization_id, w.host,
          row_number() over (partition by w.organization_id, w.email is not null order by d.due_at, d.sequence)
            + (select count(*) from held h where h.organization_id = w.organization_id
              and h.is_mail = (w.email is not null)) as place
        from webhooks w cross join lateral (
          select sequence, due_at from webhook_deliveries d
          where d.webhook_id = w.id and d.status = 'pending' and d.due_at <= now()
            and (d.held_until is null or d.held_until <= now())
          order by d.due_at, d.sequence
          limit greatest(0, case when w.failing_since is null then ${perWebhook}::int else 1 end
            - (select count(*) from held h where h.webhook_id = w.id))
        ) d
        where w.disabled_at is null
      ), fair as (
        -- Of those alone that their organizations may send: others would take a host's places from all organizations.
        select sequence, due_at, place, row_number() over (partition by host order by place, due_at, sequence)
          + (select count(*) from held h where h.host = due.host) as host_place
        from due where place <= ${perOrganization}
      ), chosen as (
        select q.sequence from webhook_deliveries q join fair using (sequence)
        where fair.host_place <= ${perHost} and q.status = 'pending' and q.due_at <= now()
        order by fair.place, fair.due_at, q.sequence limit ${most} for update of q skip locked
      )
      update webhook_deliveries d set leases = leases + 1, held_until = now() + ${leaseMs}::int * interval '1 millisecond'
      from webhooks w where w.id = d.webhook_id and d.sequence in (select sequence from chosen)
      returning d.sequence, d.organization_id as "organizationId", d.webhook_id as "webhookId",
        d.event_id as "eventId", d.event_type as "eventType", d.payload, d.leases as lease, d.attempts, w.url,
        case when w.email is not null then json_build_object('address', w.email, 'isConfirmed', w.confirmed_at is not null,
          'unsubscribeToken', w.unsubscribe_token,
          'organizationName', coalesce((select name from organizations o where o.id = w.organization_id), w.organization_id),
          'confirmationCode', case when d.event_type = ${CONFIRMATION_EVENT} and w.confirmation_expires_at > now()
            then w.confirmation_code end) end as mail`.execute(tx);
    return rows.toSorted((a, b) => Number(a.sequence) - Number(b.sequence));
  });
}

/** How a receiver answered, or why it did not. */
export interface AttemptResult {
  responseCode?: number;
  /** The first bytes of its answer. */
  responseBody?: string;
  /** A stable word for a failure without an answer. */
  error?: string;
}

/** Records that a delivery has arrived. */
export function finishWebhookDelivery(
  ledger: Ledger,
  leased: LeasedWebhookDelivery,
  result: AttemptResult,
): Promise<void> {
  return ledger.transaction().execute(async (tx) => {
    const webhook = await lockWebhook(tx, leased.organizationId, leased.webhookId);
    const isRecorded = await record(tx, leased, result, sql`status = 'succeeded', finished_at = now()`);
    if (isRecorded && webhook?.url === leased.url) {
      await sql`
        update webhooks set failing_since = null, last_failed_at = null
        where id = ${leased.webhookId} and failing_since is not null`.execute(tx);
    }
  });
}

export interface FailedAttempt extends AttemptResult {
  /** Pause before the next attempt; undefined when there is none. */
  retryMs?: number;
  /** The receiver asked for no more. */
  isGone?: boolean;
  /** Nothing of the receiver's: it does not count as one that fails. */
  isPlatformFault?: boolean;
}

/** A webhook to which nothing was sent for so long begins to fail again: longer than the longest pause between two attempts. */
const QUIET = "30 hours";

/**
 * Records that an attempt has failed. A webhook to which none has succeeded for `disableAfterMs` is disabled, and so is one whose
 * receiver asked for no more: what waits for it is given up. What an expired lease reports changes nothing.
 * @returns whether it was disabled
 */
export function failWebhookDelivery(
  ledger: Ledger,
  leased: LeasedWebhookDelivery,
  { retryMs, isGone = false, isPlatformFault = false, ...result }: FailedAttempt,
  disableAfterMs: number,
): Promise<boolean> {
  return ledger.transaction().execute(async (tx) => {
    const webhook = await lockWebhook(tx, leased.organizationId, leased.webhookId);
    // What an earlier URL answers ends nothing: it is sent to the one of now.
    const isMoved = webhook !== undefined && webhook.url !== leased.url;
    const pauseMs = isMoved ? 0 : retryMs;
    const outcome =
      pauseMs === undefined
        ? sql`status = 'failed', finished_at = now()`
        : sql`due_at = now() + ${Math.round(pauseMs)}::bigint * interval '1 millisecond'`;
    const isRecorded = await record(tx, leased, result, outcome);
    if (!isRecorded || webhook === undefined || isMoved || isPlatformFault) {
      return false;
    }
    await sql`
      update webhooks set last_failed_at = now(), failing_since =
        case when last_failed_at > now() - ${QUIET}::interval then coalesce(failing_since, now()) else now() end
      where id = ${leased.webhookId}`.execute(tx);
    const { numAffectedRows = 0n } = await sql`
      update webhooks set disabled_at = now(), updated_at = now(),
        disabled_reason = ${isGone ? "gone" : "failing"}
      where id = ${leased.webhookId} and disabled_at is null and (${isGone}::boolean
        or failing_since <= now() - ${Math.round(disableAfterMs)}::bigint * interval '1 millisecond')`.execute(
      tx,
    );
    if (numAffectedRows > 0n) {
      await giveUpDeliveries(tx, leased.webhookId);
    }
    return numAffectedRows > 0n;
  });
}

/** @returns whether the lease was still that of the delivery */
async function record(
  ledger: Ledger,
  { sequence, lease }: LeasedWebhookDelivery,
  { responseCode, responseBody, error }: AttemptResult,
  outcome: ReturnType<typeof sql>,
): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update webhook_deliveries set held_until = null, attempts = attempts + 1, attempted_at = now(),
      response_code = ${responseCode ?? null}, response_body = ${responseBody ?? null}, error = ${error ?? null}, ${outcome}
    where sequence = ${sequence} and leases = ${lease} and status = 'pending'`.execute(ledger);
  return numAffectedRows > 0n;
}
