/** Delivers events to webhooks and recipients of e-mail: leases what is due from the ledger, sends it, and records what became of it. */

import { setTimeout as sleep } from "node:timers/promises";
import type {
  AttemptResult,
  FailedAttempt,
  LeaseBounds,
  LeasedMail,
  LeasedWebhookDelivery,
  WebhookBacklog,
} from "@slipway/ledger";
import type { Logger } from "@slipway/process";
import type { Counter } from "prom-client";
import type { AttemptOutcome, WebhookMetrics } from "./metrics.ts";
import { retryPauseMs } from "./schedule.ts";
import type { SentAttempt } from "./send.ts";
import type { MailSender } from "./send-mail.ts";

/** Where deliveries wait. Each call throws while the ledger is unavailable. */
export interface DeliveryLedger {
  backlog(bounds: LeaseBounds): Promise<WebhookBacklog>;
  lease(bounds: LeaseBounds): Promise<LeasedWebhookDelivery[]>;
  finish(leased: LeasedWebhookDelivery, result: AttemptResult): Promise<void>;
  /** @returns whether the webhook was disabled by it */
  fail(leased: LeasedWebhookDelivery, attempt: FailedAttempt, disableAfterMs: number): Promise<boolean>;
}

export interface DelivererOptions {
  ledger: DeliveryLedger;
  /** What a webhook's deliveries are signed with now. @throws while the cluster is unavailable */
  secretsOf: (leased: LeasedWebhookDelivery, signal: AbortSignal) => Promise<string[]>;
  send: (
    leased: LeasedWebhookDelivery,
    secrets: readonly string[],
    signal: AbortSignal,
  ) => Promise<SentAttempt>;
  /** Undefined where the platform has no SMTP server: what waits for recipients is tried again, by the same schedule. */
  sendMail?: MailSender["send"];
  metrics: WebhookMetrics;
  random: () => number;
  log: Logger;
  bounds?: Partial<LeaseBounds>;
  pollMs?: number;
}

/** An attempt takes 15 s at most, and its Secret's read 5; that of a mail 45 s. */
const BOUNDS: LeaseBounds = { most: 32, perOrganization: 6, perWebhook: 2, perHost: 8, leaseMs: 60_000 };
const POLL_MS = 1_000;
/** A webhook to which no attempt has succeeded for so long is disabled. */
export const DISABLE_AFTER_MS = 5 * 86_400_000;
/** How long a delivery waits when nothing was sent, since its secret could not be read. */
const UNSENT_RETRY_MS = 30_000;

export class WebhookDeliverer {
  readonly #options: DelivererOptions;
  readonly #bounds: LeaseBounds;
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#bounds = { ...BOUNDS, ...options.bounds };
  }

  /** Delivers until the signal aborts; what is being sent then is sent by another process once its lease has expired. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, pollMs = POLL_MS } = this.#options;
    while (!signal.aborted) {
      const leased = await this.#leaseDue().catch((error: unknown) => {
        log.warn({ err: error }, "deliveries to webhooks cannot be read");
        return [];
      });
      for (const one of leased) {
        const done = this.#attempt(one, signal).finally(() => this.#underWay.delete(done));
        this.#underWay.add(done);
      }
      if (leased.length > 0) {
        continue;
      }
      const pause = sleep(pollMs, undefined, { signal }).catch(() => undefined);
      // The next of an organization may be leased as soon as one has ended.
      await Promise.race([pause, ...this.#underWay]);
    }
    await Promise.all(this.#underWay);
  }

  /** A read alone while nothing is due. */
  async #leaseDue(): Promise<LeasedWebhookDelivery[]> {
    const { ledger, metrics } = this.#options;
    const { isDue, lagMs } = await ledger.backlog(this.#bounds);
    metrics.lag.set(lagMs / 1_000);
    const most = this.#bounds.most - this.#underWay.size;
    return !isDue || most <= 0 ? [] : ledger.lease({ ...this.#bounds, most });
  }

  /** Never rejects: a delivery whose outcome cannot be recorded is sent again once its lease has expired. */
  async #attempt(leased: LeasedWebhookDelivery, signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    const { organizationId, webhookId: webhook, eventId: event, attempts } = leased;
    try {
      await this.#sendAndRecord(leased, signal);
    } catch (error) {
      if (!signal.aborted) {
        log.warn(
          { err: error, organizationId, webhook, event, attempts },
          "a delivery to a webhook is sent again",
        );
      }
    }
  }

  async #sendAndRecord(leased: LeasedWebhookDelivery, signal: AbortSignal): Promise<void> {
    const { send, secretsOf } = this.#options;
    if (leased.mail !== null) {
      return this.#record(leased, await this.#sendMail(leased, leased.mail, signal));
    }
    const secrets = await secretsOf(leased, signal);
    if (secrets.length === 0) {
      return this.#failed(
        leased,
        { error: "secret_missing", retryMs: this.#pauseMs(leased, UNSENT_RETRY_MS) },
        "unsigned",
      );
    }
    const sent = await send(leased, secrets, signal);
    return this.#record(leased, sent, sent.outcome !== "succeeded" && sent.responseCode === 410);
  }

  async #sendMail(
    leased: LeasedWebhookDelivery,
    mail: LeasedMail,
    signal: AbortSignal,
  ): Promise<SentAttempt> {
    const { sendMail } = this.#options;
    return sendMail === undefined
      ? { outcome: "unreachable", error: "email_not_configured", isPlatformFault: true }
      : sendMail(leased, mail, signal);
  }

  async #record(
    leased: LeasedWebhookDelivery,
    { outcome, isFinal = false, ...result }: SentAttempt,
    isGone = false,
  ): Promise<void> {
    if (outcome !== "succeeded") {
      const retryMs = isGone || isFinal ? undefined : this.#pauseMs(leased);
      return this.#failed(leased, { ...result, retryMs, isGone }, outcome);
    }
    this.#attempts(leased).inc({ outcome });
    await this.#options.ledger.finish(leased, result);
  }

  #attempts({ mail }: LeasedWebhookDelivery): Counter<"outcome"> {
    const { metrics } = this.#options;
    return mail === null ? metrics.attempts : metrics.mails;
  }

  #pauseMs({ attempts }: LeasedWebhookDelivery, leastMs = 0): number | undefined {
    const pause = retryPauseMs(attempts + 1, this.#options.random());
    return pause === undefined ? undefined : Math.max(pause, leastMs);
  }

  async #failed(
    leased: LeasedWebhookDelivery,
    attempt: FailedAttempt,
    outcome: AttemptOutcome,
  ): Promise<void> {
    const { ledger, metrics, log } = this.#options;
    this.#attempts(leased).inc({ outcome });
    const isDisabled = await ledger.fail(leased, attempt, DISABLE_AFTER_MS);
    if (isDisabled) {
      metrics.disabled.inc();
      const { organizationId, webhookId: webhook } = leased;
      log.info({ organizationId, webhook, isGone: attempt.isGone }, "a webhook was disabled");
    }
  }
}
