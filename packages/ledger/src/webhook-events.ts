import type { Ledger } from "./connect.ts";
import { CONFIRMATION_EVENT, type NotificationEvent } from "./notification-event.ts";
import type { Webhook } from "./schema.ts";
import { inTransaction, lockWebhook, mayReceive } from "./webhook-locks.ts";
import {
  countDropped,
  type EventLimits,
  insertDeliveries,
  lockEnabled,
  rememberSkipped,
  wantedDeliveries,
  withinLimits,
} from "./webhook-recording.ts";

/** Records events: one delivery for each webhook that subscribes to them. */

export const EVENT_LIMITS: EventLimits = {
  perHour: 500,
  pending: 5_000,
  mailsPerHour: 100,
  mailsPending: 1_000,
};

/** Where an event came from: an observer finds it again later, and what it left out must then be left out again. */
interface Origin {
  isObserved: boolean;
}

/**
 * Records an event that was observed, for every webhook of its organization that subscribes to it and did when it happened. Recorded again it
 * changes nothing, also where it was over a bound or in a quiet time. Nothing is written for an organization without such a webhook.
 * @returns how many deliveries it began
 */
export function recordEvent(
  ledger: Ledger,
  event: NotificationEvent,
  limits: EventLimits = EVENT_LIMITS,
): Promise<number> {
  return record(ledger, [event], limits, { isObserved: true });
}

/**
 * Records the events of what a transaction writes once: with it, or not at all. One query for all of them where no webhook subscribes.
 * @returns how many deliveries it began
 */
export function recordOwnEvents(
  transaction: Ledger,
  events: readonly NotificationEvent[],
  limits: EventLimits = EVENT_LIMITS,
): Promise<number> {
  return record(transaction, events, limits, { isObserved: false });
}

async function record(
  ledger: Ledger,
  events: readonly NotificationEvent[],
  limits: EventLimits,
  { isObserved }: Origin,
): Promise<number> {
  const found = events.length === 0 ? [] : await wantedDeliveries(ledger, events);
  if (found.length === 0) {
    return 0;
  }
  return inTransaction(ledger, async (tx) => {
    // Again, now that nothing else records for these webhooks or disables one.
    const enabled = await lockEnabled(tx, found);
    const wanted = (await wantedDeliveries(tx, events)).filter(({ webhookId }) => enabled.has(webhookId));
    const quiet = wanted.filter(({ isQuiet }) => isQuiet);
    const { begun, dropped } = await withinLimits(
      tx,
      wanted.filter(({ isQuiet }) => !isQuiet),
      limits,
    );
    const inserted = await insertDeliveries(tx, begun);
    if (isObserved) {
      await rememberSkipped(tx, [...quiet, ...dropped]);
    }
    await countDropped(tx, dropped);
    return inserted;
  });
}

/** What became of a request for one delivery. */
export type BegunDelivery = "queued" | "disabled" | "unconfirmed" | "full";

/**
 * Records an event for one webhook, whatever it subscribes to.
 * @returns undefined when the webhook does not exist
 */
export function recordEventFor(
  ledger: Ledger,
  { id }: Pick<Webhook, "id">,
  event: NotificationEvent,
  limits: EventLimits = EVENT_LIMITS,
): Promise<BegunDelivery | undefined> {
  return inTransaction(ledger, async (tx) => {
    const webhook = await lockWebhook(tx, event.organizationId, id);
    if (webhook === undefined || webhook.disabled_at !== null) {
      return webhook && "disabled";
    }
    if (!mayReceive(webhook) && event.type !== CONFIRMATION_EVENT) {
      return "unconfirmed";
    }
    const one = { webhookId: id, event, isQuiet: false, isMail: webhook.email !== null };
    const { begun, dropped } = await withinLimits(tx, [one], limits);
    await insertDeliveries(tx, begun);
    await countDropped(tx, dropped);
    return begun.length > 0 ? "queued" : "full";
  });
}
