import {
  existingWebhooks,
  failWebhookDelivery,
  finishWebhookDelivery,
  giveUpDisabledWebhooks,
  type Ledger,
  leaseWebhookDeliveries,
  listSubscribers,
  type NotificationEvent,
  readWebhookBacklog,
  recordEvent,
  retireWebhookDeliveries,
} from "@slipway/ledger";
import { ConcurrencyLimiter } from "@slipway/process";
import type { DeliveryLedger } from "./deliverer.ts";
import type { ListSubscribers } from "./subscribers.ts";

/** What notifications need of the ledger. Each call throws while it is unavailable. */
export interface NotificationLedger {
  subscribers: ListSubscribers;
  record: (event: NotificationEvent) => Promise<unknown>;
  deliveries: DeliveryLedger;
  /** Deletes some deliveries that need not be kept. Returns whether there may be more. */
  retire: () => Promise<boolean>;
  /** Ends what waits for webhooks that are disabled. */
  giveUpDisabled: () => Promise<number>;
  /** Those of these webhooks that exist. */
  existing: (ids: readonly string[]) => Promise<Set<string>>;
}

/** Days, and rows of one organization. More rows than an organization can have in the time for which events are recorded: none is recorded twice. */
const RETENTION = { days: 30, perOrganization: 25_000 };

/** Of the pool's four connections, so that the rest of the operator never waits for deliveries. */
const MAX_CONCURRENT = 2;

/** The real one. */
export function notificationLedger(ledger: Ledger): NotificationLedger {
  const limiter = new ConcurrencyLimiter({ perKey: MAX_CONCURRENT });
  const limited = async <T>(call: () => Promise<T>): Promise<T> => {
    const release = await limiter.acquire("deliveries");
    try {
      return await call();
    } finally {
      release();
    }
  };
  return {
    subscribers: () => listSubscribers(ledger),
    record: (event) => recordEvent(ledger, event),
    deliveries: {
      backlog: (bounds) => limited(() => readWebhookBacklog(ledger, bounds)),
      lease: (bounds) => limited(() => leaseWebhookDeliveries(ledger, bounds)),
      finish: (leased, result) => limited(() => finishWebhookDelivery(ledger, leased, result)),
      fail: (leased, attempt, disableAfterMs) =>
        limited(() => failWebhookDelivery(ledger, leased, attempt, disableAfterMs)),
    },
    retire: () => retireWebhookDeliveries(ledger, RETENTION),
    giveUpDisabled: () => giveUpDisabledWebhooks(ledger),
    existing: (ids) => existingWebhooks(ledger, ids),
  };
}
