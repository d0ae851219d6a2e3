import {
  type BegunDelivery,
  type ConfirmationOutcome,
  type ConfirmationRequest,
  confirmEmailRecipient,
  createEmailRecipient,
  createWebhook,
  deleteWebhook,
  findWebhook,
  hasUnsubscribeToken,
  type Ledger,
  listWebhookDeliveries,
  listWebhooks,
  type NewRecipient,
  type NotificationEvent,
  type ReceiverKind,
  recordEventFor,
  redeliverWebhook,
  requestConfirmation,
  unsubscribeRecipient,
  updateWebhook,
  type Webhook,
  type WebhookDelivery,
  type WebhookDeliveryQuery,
  type WebhookSettings,
} from "@slipway/ledger";
import { withLedgerErrors } from "../ledger/availability.ts";

/** Webhooks of one organization. */
export const MAX_WEBHOOKS = 20;
/** Recipients of e-mail of one organization. */
export const MAX_EMAIL_RECIPIENTS = 20;

/** Webhooks and recipients of e-mail, and their deliveries. Everything throws Failure 503 while the ledger is unavailable. */
export interface WebhookStore {
  /** Undefined when the organization has {@link MAX_WEBHOOKS} of them. */
  create(webhook: WebhookSettings & Pick<Webhook, "id" | "organization_id">): Promise<Webhook | undefined>;
  list(organizationId: string, kind?: ReceiverKind): Promise<Webhook[]>;
  find(organizationId: string, id: string, kind?: ReceiverKind): Promise<Webhook | undefined>;
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
  }): Promise<BegunDelivery | "pending" | "confirmation" | undefined>;
  /** Sends an event to one webhook; undefined when it does not exist any more. */
  send(webhook: Webhook, event: NotificationEvent): Promise<BegunDelivery | undefined>;
  /** `full` when the organization has {@link MAX_EMAIL_RECIPIENTS} of them. */
  createRecipient(
    recipient: NewRecipient,
    request: Pick<ConfirmationRequest, "code" | "key">,
  ): Promise<Webhook | "exists" | "full" | "limited">;
  requestConfirmation(request: ConfirmationRequest): Promise<ConfirmationOutcome | undefined>;
  confirm(request: Omit<ConfirmationRequest, "key">): Promise<Webhook | "wrong" | "expired" | undefined>;
  hasUnsubscribeToken(token: string): Promise<boolean>;
  /** Returns whether there is a recipient of this token. */
  unsubscribe(token: string): Promise<boolean>;
}

/** The ledger's. */
export function ledgerWebhooks(ledger: Ledger): WebhookStore {
  return {
    create: (webhook) => withLedgerErrors(() => createWebhook(ledger, webhook, MAX_WEBHOOKS)),
    list: (organizationId, kind) => withLedgerErrors(() => listWebhooks(ledger, organizationId, kind)),
    find: (organizationId, id, kind) => withLedgerErrors(() => findWebhook(ledger, organizationId, id, kind)),
    update: (organizationId, id, change) =>
      withLedgerErrors(() => updateWebhook(ledger, organizationId, id, change)),
    delete: (organizationId, id) => withLedgerErrors(() => deleteWebhook(ledger, organizationId, id)),
    deliveries: (query) => withLedgerErrors(() => listWebhookDeliveries(ledger, query)),
    redeliver: (of) => withLedgerErrors(() => redeliverWebhook(ledger, of)),
    send: (webhook, event) => withLedgerErrors(() => recordEventFor(ledger, webhook, event)),
    createRecipient: (recipient, request) =>
      withLedgerErrors(() => createEmailRecipient(ledger, recipient, request, MAX_EMAIL_RECIPIENTS)),
    requestConfirmation: (request) => withLedgerErrors(() => requestConfirmation(ledger, request)),
    confirm: (request) => withLedgerErrors(() => confirmEmailRecipient(ledger, request)),
    hasUnsubscribeToken: (token) => withLedgerErrors(() => hasUnsubscribeToken(ledger, token)),
    unsubscribe: (token) => withLedgerErrors(() => unsubscribeRecipient(ledger, token)),
  };
}
