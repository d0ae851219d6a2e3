import {
  existingWebhooks,
  failWebhookDelivery,
  finishWebhookDelivery,
  type Ledger,
  leaseWebhookDeliveries,
  listSubscribers,
  type NotificationEvent,
  readWebhookBacklog,
  recordEvent,
  retireWebhookDeliveries,
} from "@slipway/ledger";
import type { DeliveryLedger } from "./deliverer.ts";
import type { ListSubscribers } from "./subscribers.ts";

/** What notifications need of the ledger. Each call throws while it is unavailable. */
export interface NotificationLedger {
  subscribers: ListSubscribers;
  record: (event: NotificationEvent) => Promise<unknown>;
  deliveries: DeliveryLedger;
  /** Deletes deliveries that need not be kept. */
  retire: () => Promise<number>;
  /** Those of these webhooks that exist. */
  existing: (ids: readonly string[]) => Promise<Set<string>>;
}

/** Days, and rows of one organization. More rows than an organization can have in {@link recordEvent}'s window of news: none is recorded twice. */
const RETENTION = { days: 30, perOrganization: 25_000 };

/** The real one. */
export const notificationLedger = (ledger: Ledger): NotificationLedger => ({
  subscribers: () => listSubscribers(ledger),
  record: (event) => recordEvent(ledger, event),
  deliveries: {
    backlog: () => readWebhookBacklog(ledger),
    lease: (bounds) => leaseWebhookDeliveries(ledger, bounds),
    finish: (leased, result) => finishWebhookDelivery(ledger, leased, result),
    fail: (leased, attempt, disableAfterMs) => failWebhookDelivery(ledger, leased, attempt, disableAfterMs),
  },
  retire: () => retireWebhookDeliveries(ledger, RETENTION),
  existing: (ids) => existingWebhooks(ledger, ids),
});
