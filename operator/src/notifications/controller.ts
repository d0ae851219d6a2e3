/** Notifications: what observes events, what delivers them to webhooks and by e-mail, and what removes the remains of both. */

import { readFileSync } from "node:fs";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { Manager, Store } from "@slipway/controller-runtime";
import type { PolicyRule } from "../rbac.ts";
import { WebhookDeliverer } from "./deliverer.ts";
import type { NotificationLedger } from "./ledger.ts";
import { createWebhookMetrics } from "./metrics.ts";
import { addEventObservers, type ObservedStores } from "./observer.ts";
import { deleteOrphanedSecrets, signingSecrets } from "./secret.ts";
import { receiverClient, sendDelivery } from "./send.ts";
import { mailSender, type SmtpSettings } from "./send-mail.ts";
import { Subscribers } from "./subscribers.ts";

/** In every namespace: what is observed. */
export const rules: PolicyRule[] = [
  {
    apiGroups: ["slipway.dev"],
    resources: ["projects", "backups", "domainclaims"],
    verbs: ["list", "watch"],
  },
];

/** In organizations' namespaces alone: what deliveries are signed with. */
export const organizationRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch", "delete"] },
];

/** Between two removals of what is left over. */
const CLEANUP_PERIOD_MS = 600_000;

export interface NotificationOptions {
  ledger: NotificationLedger;
  stores: ObservedStores & {
    /** Secrets of organizations' namespaces, without their data. */
    secrets: Store;
  };
  settings: {
    allowedHosts: readonly string[];
    caFile?: string;
    deniedCidrs: readonly string[];
    /** The server that takes mails; without it none are sent. */
    smtp?: SmtpSettings & { caFile?: string };
  };
}

/** Adds them to a manager. Every process delivers; only the leader of a shard observes. */
export function addNotifications(manager: Manager, { ledger, stores, settings }: NotificationOptions): void {
  const { client, clock, log, random } = manager;
  const subscribers = new Subscribers(ledger.subscribers, log);
  addEventObservers(manager, stores, subscribers, ledger.record);
  manager.addRunnable({
    name: "webhook-subscribers",
    everyShard: true,
    run: (signal) => subscribers.run(signal),
  });

  const metrics = createWebhookMetrics(manager.registry);
  const { allowedHosts, deniedCidrs, caFile, smtp } = settings;
  manager.addRunnable({
    name: "webhook-deliveries",
    leaderOnly: false,
    run: async (signal) => {
      const ca = certificates(caFile);
      const mails = smtp && mailSender(smtp, { ca: certificates(smtp.caFile) });
      const receivers = receiverClient({ allowedHosts, ca, deniedCidrs });
      const deliverer = new WebhookDeliverer({
        ledger: ledger.deliveries,
        secretsOf: (leased, until) => signingSecrets(client, leased, clock.now(), until),
        send: (leased, secrets, until) =>
          sendDelivery(leased, secrets, { client: receivers, now: clock.now(), signal: until }),
        sendMail: mails?.send,
        metrics,
        random,
        log,
      });
      await deliverer.run(signal);
      mails?.close();
      await receivers.close();
    },
  });
  manager.addRunnable({
    name: "webhook-cleanup",
    run: (signal) => repeatedly(signal, () => cleanUpDeliveries(ledger, signal)),
  });
  // Those of the shard's own namespaces.
  manager.addRunnable({
    name: "webhook-secret-cleanup",
    everyShard: true,
    run: (signal) =>
      repeatedly(signal, async () => {
        if (stores.secrets.hasSynced) {
          const { secrets } = stores;
          await deleteOrphanedSecrets({ client, secrets, existing: ledger.existing }, clock.now(), signal);
        }
      }),
  });

  async function repeatedly(signal: AbortSignal, cleanUp: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      await cleanUp().catch((error: unknown) => {
        if (!signal.aborted) {
          log.warn({ err: error }, "the remains of webhooks cannot be removed");
        }
      });
      await sleep(CLEANUP_PERIOD_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

const certificates = (file: string | undefined): string | undefined =>
  file === undefined ? undefined : readFileSync(file, "utf8");

/** Removes what need not be kept, step by step until there is no more of it. */
export async function cleanUpDeliveries(
  ledger: Pick<NotificationLedger, "giveUpDisabled" | "retire">,
  signal: AbortSignal,
): Promise<void> {
  await ledger.giveUpDisabled();
  while (!signal.aborted && (await ledger.retire())) {
    await setImmediate();
  }
}
