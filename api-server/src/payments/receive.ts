import { type DecidedOutcome, recordPaymentEvent } from "@slipway/ledger";
import { isSignedByStripe, type ReceivedWebhook, verifiedStandardId } from "@slipway/process";
import { failures } from "../errors/catalog.ts";
import { jsonShapeProblem } from "../http/json-body.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { Services } from "../services.ts";
import { readGenericEvent } from "./generic.ts";
import { EVENT_ID, type ReadEvent } from "./read-event.ts";
import type { PaymentProvider } from "./secrets.ts";
import type { Payments } from "./settings.ts";
import { readStripeEvent } from "./stripe.ts";

/** Receives webhooks of payments: nothing of a body is read before its signature is verified. */

/** Why an event changed nothing. Stable: answers and logs have them, and the ledger the names on the left. */
export const refusalCodes = {
  unknown_invoice: "PAYMENT_INVOICE_UNKNOWN",
  wrong_currency: "PAYMENT_CURRENCY_MISMATCH",
  wrong_amount: "PAYMENT_AMOUNT_MISMATCH",
  not_open: "PAYMENT_INVOICE_NOT_OPEN",
  taken_back: "PAYMENT_TAKEN_BACK",
  partial_refund: "PAYMENT_REFUND_PARTIAL",
  unknown_payment: "PAYMENT_UNKNOWN",
  refund_failed: "PAYMENT_REFUND_FAILED",
  other_invoice: "PAYMENT_OF_OTHER_INVOICE",
  test_mode: "PAYMENT_TEST_MODE",
} as const satisfies Record<Exclude<DecidedOutcome, "applied" | "already">, string>;
export type RefusalCode = (typeof refusalCodes)[keyof typeof refusalCodes];

export type ReceivedPayment =
  | { outcome: "applied" | "duplicate" | "ignored" }
  | { outcome: "refused"; code: RefusalCode };

type PaymentServices = Pick<Services, "ledger" | "logger" | "metrics" | "now" | "payments">;

/**
 * Verifies, reads and records one.
 * @param onSigned called before it is read
 * @throws Failure 400 where it is signed and cannot be read, 401 where it is not signed, 503 when the ledger is unavailable: then the sender tries again
 */
export async function receivePayment(
  provider: PaymentProvider,
  webhook: ReceivedWebhook,
  { ledger, logger, metrics, now, payments }: PaymentServices,
  onSigned: () => void | Promise<void>,
): Promise<ReceivedPayment> {
  const at = now();
  const read = readVerified(provider, webhook, payments, at);
  if (read === undefined) {
    metrics.paymentEvent(provider, "unsigned");
    throw failures.paymentWebhookUnsigned();
  }
  await onSigned();
  if (read.kind === "unreadable") {
    metrics.paymentEvent(provider, "unreadable");
    logger.warn({ provider, reason: read.reason }, "a payment webhook that is signed cannot be read");
    throw failures.malformedBody(read.reason);
  }
  const recorded =
    read.kind === "ignored"
      ? "unrelated"
      : await payments.recording
          .run(provider, () => withLedgerErrors(() => recordPaymentEvent(ledger, read.event)))
          .catch((error: unknown) => {
            metrics.paymentEvent(provider, "unavailable");
            throw error;
          });
  if (read.kind === "ignored" || recorded === "unrelated") {
    metrics.paymentEvent(provider, "ignored");
    return { outcome: "ignored" };
  }
  const { outcome, isRepeat, invoice } = recorded;
  const { eventId, eventType } = read.event;
  if (isRepeat) {
    metrics.paymentEvent(provider, "duplicate");
    return { outcome: "duplicate" };
  }
  if (outcome === "applied" || outcome === "already") {
    metrics.paymentEvent(provider, "applied");
    logger.info({ provider, eventId, eventType, invoice, outcome }, "a payment webhook is recorded");
    return { outcome: "applied" };
  }
  const code = refusalCodes[outcome];
  metrics.paymentEvent(provider, "refused");
  logger.warn({ provider, eventId, eventType, invoice, code }, "a payment webhook changes no invoice");
  return { outcome: "refused", code };
}

/** What a webhook says; undefined where it is not signed. */
function readVerified(
  provider: PaymentProvider,
  webhook: ReceivedWebhook,
  { secrets: known, acceptsStripeTests }: Payments,
  now: Date,
): ReadEvent | undefined {
  const secrets = known[provider]?.() ?? [];
  if (provider === "stripe") {
    return isSignedByStripe(webhook, secrets, now)
      ? readJson(webhook.body, (body) => readStripeEvent(body, { acceptsStripeTests }))
      : undefined;
  }
  const id = verifiedStandardId(webhook, secrets, now);
  if (id === undefined) {
    return undefined;
  }
  return EVENT_ID.test(id)
    ? readJson(webhook.body, (body) => readGenericEvent(body, id, now))
    : { kind: "unreadable", reason: "webhook-id must be 1 to 255 visible characters" };
}

function readJson(bytes: Uint8Array, read: (body: unknown) => ReadEvent): ReadEvent {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const reason = jsonShapeProblem(text);
    return reason === undefined ? read(JSON.parse(text)) : { kind: "unreadable", reason };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) {
      return { kind: "unreadable", reason: "the body is not valid JSON" };
    }
    throw error;
  }
}
