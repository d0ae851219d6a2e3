import { timingSafeEqual } from "node:crypto";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { CONFIRMATION_EVENT, type NotificationEvent } from "./notification-event.ts";
import type { Webhook } from "./schema.ts";
import { EVENT_LIMITS, recordEventFor } from "./webhook-events.ts";
import { committedUnless, giveUpDeliveries, lockWebhook } from "./webhook-locks.ts";
import type { EventLimits } from "./webhook-recording.ts";
import { createReceiver } from "./webhooks.ts";

/**
 * Recipients of e-mail: webhooks with an address. Nothing but confirmation mails is sent to one that has not confirmed, and of those so few
 * that the platform is of no use to send mail to strangers.
 */

/** Confirmation mails that are sent. */
export interface ConfirmationLimits {
  perOrganizationHour: number;
  /** To one mailbox, of all organizations. */
  perMailboxHour: number;
  perMailboxDay: number;
  /** Of those, of one organization: another one can still confirm the mailbox. */
  perOrganizationMailboxDay: number;
}

export const CONFIRMATION_LIMITS: ConfirmationLimits = {
  perOrganizationHour: 10,
  perMailboxHour: 3,
  perMailboxDay: 5,
  perOrganizationMailboxDay: 2,
};
/** For how long a code confirms. */
const CODE_LIFETIME = "24 hours";
/** Wrong codes after which only a new one confirms. */
export const CONFIRMATION_TRIES = 5;

/** What a confirmation is requested with. */
export interface ConfirmationRequest {
  organizationId: string;
  id: string;
  code: string;
  /** What names the request among the organization's. */
  key: string;
}

/** What became of a request for a confirmation mail: `limited` when too many were sent. */
export type ConfirmationOutcome = "queued" | "confirmed" | "disabled" | "limited" | "full";

/** A recipient as a client sets it. */
export type NewRecipient = Pick<Webhook, "id" | "organization_id" | "event_types" | "project_ids"> & {
  email: string;
  unsubscribe_token: string;
};

/** The mailbox that mail to an address most likely goes to: whatever follows a plus sign chooses a folder there. Pure. */
export function mailboxOf(email: string): string {
  const [local = "", domain = ""] = email.toLowerCase().split("@");
  return `${local.split("+")[0]}@${domain}`;
}

/** Creates a recipient and requests its confirmation; none is created where that cannot be sent. */
export async function createEmailRecipient(
  ledger: Ledger,
  recipient: NewRecipient,
  request: Pick<ConfirmationRequest, "code" | "key">,
  most: number,
): Promise<Webhook | "exists" | "full" | "limited"> {
  const { organization_id: organizationId, id, email } = recipient;
  type Outcome = Webhook | "exists" | "full" | "limited";
  return committedUnless<Outcome>(
    ledger,
    (outcome) => typeof outcome === "string",
    async (tx) => {
      const settings = { url: `mailto:${email}`, host: "smtp", description: null };
      const created = await createReceiver(tx, { ...settings, ...recipient }, most);
      if (created === undefined || created === "exists") {
        return created ?? "full";
      }
      const outcome = await confirmationIn(tx, { organizationId, id, ...request });
      return outcome === "queued" ? created : "limited";
    },
  );
}

/**
 * Has a confirmation mail sent with a new code, within bounds. Where none is sent the code before stays valid.
 * @returns undefined when the organization has no such recipient
 */
export function requestConfirmation(
  ledger: Ledger,
  request: ConfirmationRequest,
  limits: EventLimits = EVENT_LIMITS,
): Promise<ConfirmationOutcome | undefined> {
  return committedUnless<ConfirmationOutcome | undefined>(
    ledger,
    (outcome) => outcome !== "queued",
    (tx) => confirmationIn(tx, request, limits),
  );
}

async function confirmationIn(
  tx: Ledger,
  { organizationId, id, code, key }: ConfirmationRequest,
  limits: EventLimits = EVENT_LIMITS,
): Promise<ConfirmationOutcome | undefined> {
  const recipient = await lockWebhook(tx, organizationId, id);
  if (recipient === undefined || recipient.email === null) {
    return undefined;
  }
  if (recipient.disabled_at !== null && recipient.disabled_reason !== "unsubscribed") {
    return "disabled";
  }
  if (recipient.confirmed_at !== null) {
    return "confirmed";
  }
  if (!(await countConfirmation(tx, organizationId, mailboxOf(recipient.email)))) {
    return "limited";
  }
  await sql`
      update webhooks set confirmation_code = ${code}, confirmation_tries = 0, disabled_at = null, disabled_reason = null,
        confirmation_expires_at = now() + ${CODE_LIFETIME}::interval, updated_at = now()
      where id = ${id}`.execute(tx);
  const event: NotificationEvent = {
    organizationId,
    projectId: null,
    type: CONFIRMATION_EVENT,
    key,
    occurredAt: new Date(),
    data: {},
  };
  const begun = await recordEventFor(tx, { id }, event, limits);
  return begun === "full" ? "full" : "queued";
}

/** Counts one confirmation mail. @returns false when it would be one too many */
async function countConfirmation(
  tx: Ledger,
  organizationId: string,
  mailbox: string,
  limits: ConfirmationLimits = CONFIRMATION_LIMITS,
): Promise<boolean> {
  // One after the other, or concurrent requests would each find room.
  await sql`select pg_advisory_xact_lock(hashtextextended(key, 0))
    from unnest(${[`confirmations of ${organizationId}`, `confirmations to ${mailbox}`]}::text[]) k (key)`.execute(
    tx,
  );
  const { rows } = await sql<{ organization: number; hour: number; day: number; own: number }>`
    select (select count(*)::int from email_confirmations
        where organization_id = ${organizationId} and created_at > now() - interval '1 hour') as organization,
      (select count(*)::int from email_confirmations
        where mailbox = ${mailbox} and created_at > now() - interval '1 hour') as hour,
      (select count(*)::int from email_confirmations
        where mailbox = ${mailbox} and created_at > now() - interval '1 day') as day,
      (select count(*)::int from email_confirmations
        where mailbox = ${mailbox} and organization_id = ${organizationId}
          and created_at > now() - interval '1 day') as own`.execute(tx);
  const [count] = rows;
  if (
    count === undefined ||
    count.organization >= limits.perOrganizationHour ||
    count.hour >= limits.perMailboxHour ||
    count.day >= limits.perMailboxDay ||
    count.own >= limits.perOrganizationMailboxDay
  ) {
    return false;
  }
  await tx.insertInto("email_confirmations").values({ organization_id: organizationId, mailbox }).execute();
  return true;
}

/**
 * Confirms a recipient by the code of its newest confirmation mail. Confirmed already, it stays so.
 * @returns the recipient, `wrong` for another code, `expired` when no code of it confirms any more, undefined when there is none
 */
export function confirmEmailRecipient(
  ledger: Ledger,
  { organizationId, id, code }: Omit<ConfirmationRequest, "key">,
): Promise<Webhook | "wrong" | "expired" | undefined> {
  return ledger.transaction().execute(async (tx) => {
    const recipient = await lockWebhook(tx, organizationId, id);
    if (recipient === undefined || recipient.email === null) {
      return undefined;
    }
    if (recipient.confirmed_at !== null) {
      return recipient;
    }
    const { confirmation_code: expected, confirmation_tries: tries } = recipient;
    const { rows } = await sql<{ isExpired: boolean }>`
      select coalesce(confirmation_expires_at <= now(), true) as "isExpired" from webhooks where id = ${id}`.execute(
      tx,
    );
    if (expected === null || tries >= CONFIRMATION_TRIES || rows[0]?.isExpired !== false) {
      return "expired";
    }
    if (!isSame(expected, code)) {
      await sql`update webhooks set confirmation_tries = confirmation_tries + 1 where id = ${id}`.execute(tx);
      return "wrong";
    }
    return tx
      .updateTable("webhooks")
      .set({
        confirmed_at: sql<Date>`now()`,
        confirmation_code: null,
        confirmation_expires_at: null,
        subscribed_since: sql<Date>`now()`,
        updated_at: sql<Date>`now()`,
      })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
  });
}

function isSame(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/**
 * Ends all mail to the recipient of a token, until it confirms again. Repeated it changes nothing.
 * @returns whether there is such a recipient
 */
export async function unsubscribeRecipient(ledger: Ledger, token: string): Promise<boolean> {
  const found = await ledger
    .selectFrom("webhooks")
    .select(["id", "organization_id"])
    .where("unsubscribe_token", "=", token)
    .executeTakeFirst();
  if (found === undefined) {
    return false;
  }
  await ledger.transaction().execute(async (tx) => {
    const recipient = await lockWebhook(tx, found.organization_id, found.id);
    if (recipient === undefined || recipient.disabled_reason === "unsubscribed") {
      return;
    }
    await giveUpDeliveries(tx, found.id);
    await sql`
      update webhooks set disabled_at = now(), disabled_reason = 'unsubscribed', confirmed_at = null, confirmation_code = null,
        confirmation_expires_at = null, updated_at = now()
      where id = ${found.id}`.execute(tx);
  });
  return true;
}

/** Whether a token names a recipient. */
export async function hasUnsubscribeToken(ledger: Ledger, token: string): Promise<boolean> {
  const found = await ledger
    .selectFrom("webhooks")
    .select("id")
    .where("unsubscribe_token", "=", token)
    .executeTakeFirst();
  return found !== undefined;
}
