/** What is measured of webhooks. No label has values without bound. */

import { Counter, Gauge, type Registry } from "prom-client";

const OUTCOMES = ["succeeded", "refused", "unreachable", "unsigned"] as const;
/** `recipient_refused` and `withheld` say nothing of the mail server: there is no such recipient, or the mail is not to be sent any more. */
const MAIL_OUTCOMES = ["succeeded", "refused", "unreachable", "recipient_refused", "withheld"] as const;
export type AttemptOutcome = (typeof OUTCOMES | typeof MAIL_OUTCOMES)[number];

export interface WebhookMetrics {
  attempts: Counter<"outcome">;
  mails: Counter<"outcome">;
  disabled: Counter;
  /** Seconds for which the webhook that waits longest has waited; 0 while none does. */
  lag: Gauge;
}

/** Registers the metrics. @throws Error when it is called twice for one registry */
export function createWebhookMetrics(registry: Registry): WebhookMetrics {
  const registers = [registry];
  const attempts = new Counter({
    name: "slipway_webhook_attempts_total",
    help: "Attempts to deliver an event to a webhook, by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  const mails = new Counter({
    name: "slipway_email_attempts_total",
    help: "Attempts to send a mail about an event, by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  for (const outcome of OUTCOMES) {
    attempts.inc({ outcome }, 0);
  }
  for (const outcome of MAIL_OUTCOMES) {
    mails.inc({ outcome }, 0);
  }
  return {
    attempts,
    mails,
    disabled: new Counter({
      name: "slipway_webhooks_disabled_total",
      help: "Webhooks that were disabled since their receivers failed for days or asked for no more.",
      registers,
    }),
    lag: new Gauge({
      name: "slipway_webhook_lag_seconds",
      help: "For how long the webhook that waits longest has waited for a delivery that is due, while nothing is sent to it.",
      registers,
    }),
  };
}
