import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import type { Webhook } from "./schema.ts";
import { giveUpDeliveries, inTransaction, lockWebhook } from "./webhook-locks.ts";

/** Webhooks of organizations, whose secrets are not here, and recipients of e-mail. */

/** What a client sets of a webhook. */
export type WebhookSettings = Pick<Webhook, "url" | "host" | "description" | "event_types" | "project_ids">;

/** Where events are sent: webhooks, or recipients of e-mail. */
export type ReceiverKind = "webhook" | "email";

const isOfKind = (kind: ReceiverKind) => (kind === "email" ? ("is not" as const) : ("is" as const));

/**
 * Creates a webhook, unless the organization has as many as it may.
 * @returns undefined when it has
 */
export async function createWebhook(
  ledger: Ledger,
  webhook: WebhookSettings & Pick<Webhook, "id" | "organization_id">,
  most: number,
): Promise<Webhook | undefined> {
  const created = await createReceiver(ledger, webhook, most);
  return created === "exists" ? undefined : created;
}

/**
 * Creates a webhook, or with an address a recipient of e-mail, of which the organization has one for each address.
 * @returns undefined when the organization has as many of the kind as it may
 */
export function createReceiver(
  ledger: Ledger,
  webhook: WebhookSettings &
    Pick<Webhook, "id" | "organization_id"> & { email?: string; unsubscribe_token?: string },
  most: number,
): Promise<Webhook | "exists" | undefined> {
  return inTransaction(ledger, async (tx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`webhooks ${webhook.organization_id}`}, 0))`.execute(
      tx,
    );
    const { email, organization_id } = webhook;
    const found = await listWebhooks(tx, organization_id, email === undefined ? "webhook" : "email");
    if (found.some((other) => other.email !== null && other.email === email)) {
      return "exists";
    }
    if (found.length >= most) {
      return undefined;
    }
    return tx.insertInto("webhooks").values(webhook).returningAll().executeTakeFirstOrThrow();
  });
}

/** All of an organization, the oldest first. */
export async function listWebhooks(
  ledger: Ledger,
  organizationId: string,
  kind: ReceiverKind = "webhook",
): Promise<Webhook[]> {
  return ledger
    .selectFrom("webhooks")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .where("email", isOfKind(kind), null)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
}

/** The organization's webhook or recipient; undefined when it has none of this id and kind. */
export async function findWebhook(
  ledger: Ledger,
  organizationId: string,
  id: string,
  kind: ReceiverKind = "webhook",
): Promise<Webhook | undefined> {
  return ledger
    .selectFrom("webhooks")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .where("id", "=", id)
    .where("email", isOfKind(kind), null)
    .executeTakeFirst();
}

const NOT_FAILING = { failing_since: null, last_failed_at: null };

/** Whether a list that may be given differs from what is kept; null is all. */
function isOther(given: readonly string[] | null | undefined, kept: readonly string[] | null): boolean {
  const sorted = (list: readonly string[] | null) => JSON.stringify(list?.toSorted() ?? null);
  return given !== undefined && sorted(given) !== sorted(kept);
}

/**
 * Changes a webhook. Switched off, what waits for it is given up; switched on or moved to another URL, it counts as one that does not
 * fail. With other types or projects, or switched on, it gets what happens from then on.
 * @returns undefined when the organization has none of this id
 */
export function updateWebhook(
  ledger: Ledger,
  organizationId: string,
  id: string,
  { isEnabled, ...settings }: Partial<WebhookSettings> & { isEnabled?: boolean },
): Promise<Webhook | undefined> {
  return ledger.transaction().execute(async (tx) => {
    const before = await lockWebhook(tx, organizationId, id);
    if (before === undefined) {
      return undefined;
    }
    const isDisabled = before.disabled_at !== null;
    const state =
      isEnabled === undefined || isEnabled === !isDisabled
        ? {}
        : isEnabled
          ? { disabled_at: null, disabled_reason: null, ...NOT_FAILING }
          : { disabled_at: sql<Date>`now()`, disabled_reason: "requested" as const };
    if (isEnabled === false && !isDisabled) {
      await giveUpDeliveries(tx, id);
    }
    const isMoved = settings.url !== undefined && settings.url !== before.url;
    const isResubscribed =
      (isEnabled === true && isDisabled) ||
      isOther(settings.event_types, before.event_types) ||
      isOther(settings.project_ids, before.project_ids);
    return tx
      .updateTable("webhooks")
      .set({
        ...settings,
        ...(isMoved ? NOT_FAILING : {}),
        ...state,
        ...(isResubscribed ? { subscribed_since: sql<Date>`now()` } : {}),
        updated_at: sql<Date>`now()`,
      })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
  });
}

/** Deletes a webhook with its deliveries. @returns whether there was one */
export async function deleteWebhook(ledger: Ledger, organizationId: string, id: string): Promise<boolean> {
  const { numDeletedRows } = await ledger
    .deleteFrom("webhooks")
    .where("organization_id", "=", organizationId)
    .where("id", "=", id)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** When the newest of its webhooks was made or changed, of each organization that has any that is not switched off. */
export async function listSubscribers(
  ledger: Ledger,
): Promise<{ organizationId: string; changedAt: Date }[]> {
  const { rows } = await sql<{ organizationId: string; changedAt: Date }>`
    select organization_id as "organizationId", max(updated_at) as "changedAt" from webhooks
    where disabled_at is null and (email is null or confirmed_at is not null) group by 1`.execute(ledger);
  return rows;
}

/** Those of these ids that exist. */
export async function existingWebhooks(ledger: Ledger, ids: readonly string[]): Promise<Set<string>> {
  const { rows } = await sql<{ id: string }>`
    select id from webhooks where id = any (${[...ids]}::text[])`.execute(ledger);
  return new Set(rows.map(({ id }) => id));
}
