import {
  type BegunDelivery,
  createWebhook,
  deleteWebhook,
  findWebhook,
  type Ledger,
  listWebhookDeliveries,
  listWebhooks,
  type NotificationEvent,
  recordEventFor,
  redeliverWebhook,
  updateWebhook,
  type Webhook,
  type WebhookDelivery,
  type WebhookDeliveryQuery,
  type WebhookSettings,
} from "@slipway/ledger";
import { withLedgerErrors } from "../ledger/availability.ts";

/** Webhooks of one organization. */
export const MAX_WEBHOOKS = 20;

/** Webhooks and their deliveries. Everything throws Failure 503 while the ledger is unavailable. */
export interface WebhookStore {
  /** Undefined when the organization has {@link MAX_WEBHOOKS} of them. */
  create(webhook: WebhookSettings & Pick<Webhook, "id" | "organization_id">): Promise<Webhook | undefined>;
  list(organizationId: string): Promise<Webhook[]>;
  find(organizationId: string, id: string): Promise<Webhook | undefined>;
  update(
    organizationId: string,
    id: string,
    change: Partial<WebhookSettings> & { isEnabled?: boolean },
  ): Promise<Webhook | undefined>;
  /** Returns whether there was one. */
  delete(organizationId: string, id: string): Promise<boolean>;
  deliveries(query: WebhookDeliveryQuery): Promise<{ total: number; deliveries: WebhookDelivery[] }>;
  redeliver(of: {
    organizationId: string;
    webhookId: string;
    eventId: string;
  }): Promise<BegunDelivery | "pending" | undefined>;
  /** Sends an event to one webhook; undefined when it does not exist any more. */
  send(webhook: Webhook, event: NotificationEvent): Promise<BegunDelivery | undefined>;
}

/** The ledger's. */
export function ledgerWebhooks(ledger: Ledger): WebhookStore {
  return {
    create: (webhook) => withLedgerErrors(() => createWebhook(ledger, webhook, MAX_WEBHOOKS)),
    list: (organizationId) => withLedgerErrors(() => listWebhooks(ledger, organizationId)),
    find: (organizationId, id) => withLedgerErrors(() => findWebhook(ledger, organizationId, id)),
    update: (organizationId, id, change) =>
      withLedgerErrors(() => updateWebhook(ledger, organizationId, id, change)),
    delete: (organizationId, id) => withLedgerErrors(() => deleteWebhook(ledger, organizationId, id)),
    deliveries: (query) => withLedgerErrors(() => listWebhookDeliveries(ledger, query)),
    redeliver: (of) => withLedgerErrors(() => redeliverWebhook(ledger, of)),
    send: (webhook, event) => withLedgerErrors(() => recordEventFor(ledger, webhook, event)),
  };
}
