import type { PaymentEvent } from "@slipway/ledger";
import { z } from "zod";
import { CURRENCY_CODE, claimedInvoice, EVENT_ID, REFERENCE, type ReadEvent } from "./read-event.ts";

/** Reads events of Stripe (https://docs.stripe.com/api/events). Their signatures are verified before. Pure. */

/** The member of an object's metadata that names an invoice. */
export const INVOICE_METADATA = "slipway_invoice";

const reference = z.string().regex(REFERENCE);
/** An id, or the whole object where the sender expands it. */
const paymentIntent = z
  .union([reference, z.looseObject({ id: reference }).transform(({ id }) => id)])
  .nullish();
/** In the currency's smallest unit. A number of JSON is exact up to 2^53. */
const amount = z.int().min(0);
const money = { currency: z.string().regex(CURRENCY_CODE) };

interface Money {
  reference: string;
  currency: string;
  amount: number;
}

/** What an object says was paid; undefined where it is not paid yet. */
type ReadObject = (object: unknown) => z.ZodSafeParseResult<Money | undefined>;

const invoicePaid = z
  .object({ id: reference, ...money, amount_paid: amount, payment_intent: paymentIntent })
  .transform(({ id, currency, amount_paid, payment_intent }) => ({
    reference: payment_intent ?? id,
    currency,
    amount: amount_paid,
  }));
const intentSucceeded = z
  .object({ id: reference, ...money, amount_received: amount })
  .transform(({ id, currency, amount_received }) => ({ reference: id, currency, amount: amount_received }));
const sessionCompleted = z
  .object({
    ...{ id: reference, ...money, amount_total: amount, payment_intent: paymentIntent },
    payment_status: z.string(),
  })
  .transform(({ id, currency, amount_total, payment_intent, payment_status }) =>
    payment_status === "paid"
      ? { reference: payment_intent ?? id, currency, amount: amount_total }
      : undefined,
  );

const payments: Readonly<Record<string, ReadObject>> = {
  "invoice.paid": (object) => invoicePaid.safeParse(object),
  "payment_intent.succeeded": (object) => intentSucceeded.safeParse(object),
  "checkout.session.completed": (object) => sessionCompleted.safeParse(object),
  "checkout.session.async_payment_succeeded": (object) => sessionCompleted.safeParse(object),
};

/** All refunds of a charge so far. */
const chargeRefunded = z.object({
  id: reference,
  ...money,
  amount_refunded: amount,
  refunded: z.boolean(),
  payment_intent: paymentIntent,
});

/** One refund, where it has failed: the platform has the money again. */
const refundFailed = z.object({
  ...money,
  amount,
  status: z.string().nullish(),
  charge: paymentIntent,
  payment_intent: paymentIntent,
});

const envelope = z.object({
  id: z.string().regex(EVENT_ID),
  type: z.string(),
  livemode: z.boolean(),
  created: z.int().min(0).max(32_503_680_000),
  data: z.object({ object: z.looseObject({ metadata: z.unknown() }) }),
});

const metadata = z.looseObject({ [INVOICE_METADATA]: z.string().optional() });

const REFUNDED = "charge.refunded";
/** By version of Stripe's API, several of them of the same failure. */
const REFUND_CHANGED = ["refund.failed", "refund.updated", "charge.refund.updated"];
const FAILED = ["failed", "canceled"];

/** What an event says of an invoice. Events of other types, and of what names no invoice, are ignored. */
export function readStripeEvent(
  body: unknown,
  { acceptsStripeTests }: { acceptsStripeTests: boolean },
): ReadEvent {
  const type = (body as { type?: unknown } | null)?.type;
  if (typeof type !== "string" || !isRead(type)) {
    return { kind: "ignored" };
  }
  const read = envelope.safeParse(body);
  if (!read.success) {
    return unreadable(read.error);
  }
  const { id: eventId, created, data, livemode } = read.data;
  const named = metadata.safeParse(data.object.metadata ?? {});
  const claimed = claimedInvoice((named.success && named.data[INVOICE_METADATA]) || "");
  const common = {
    provider: "stripe",
    eventId,
    eventType: type,
    occurredAt: new Date(created * 1_000),
    ...(livemode || acceptsStripeTests ? {} : { isTest: true }),
  } as const;
  if (type === REFUNDED) {
    return readRefund(data.object, { ...common, kind: "refund", invoice: claimed || undefined });
  }
  if (REFUND_CHANGED.includes(type)) {
    return readChangedRefund(data.object, {
      ...common,
      kind: "refund_failed",
      invoice: claimed || undefined,
    });
  }
  if (claimed === "") {
    return { kind: "ignored" };
  }
  const paid = (payments[type] as ReadObject)(data.object);
  if (!paid.success) {
    return unreadable(paid.error);
  }
  if (paid.data === undefined) {
    return { kind: "ignored" };
  }
  return { kind: "event", event: { ...common, kind: "payment", invoice: claimed, ...moneyOf(paid.data) } };
}

const isRead = (type: string): boolean =>
  Object.hasOwn(payments, type) || type === REFUNDED || REFUND_CHANGED.includes(type);

type Common = Omit<PaymentEvent, "reference" | "currency" | "amount">;

function readRefund(object: unknown, common: Common): ReadEvent {
  const read = chargeRefunded.safeParse(object);
  if (!read.success) {
    return unreadable(read.error);
  }
  const { id, currency, amount_refunded, refunded, payment_intent } = read.data;
  const refund = moneyOf({ reference: payment_intent ?? id, currency, amount: amount_refunded });
  return { kind: "event", event: { ...common, ...refund, isPartial: !refunded } };
}

function readChangedRefund(object: unknown, common: Common): ReadEvent {
  const read = refundFailed.safeParse(object);
  if (!read.success) {
    return unreadable(read.error);
  }
  const { currency, amount, status, charge, payment_intent } = read.data;
  const reference = payment_intent ?? charge ?? undefined;
  // One of no payment, such as of a customer's balance, is of no invoice.
  if (reference === undefined || !FAILED.includes(status ?? "")) {
    return { kind: "ignored" };
  }
  return { kind: "event", event: { ...common, ...moneyOf({ reference, currency, amount }) } };
}

function moneyOf({
  reference,
  currency,
  amount,
}: Money): Pick<PaymentEvent, "reference" | "currency" | "amount"> {
  const code = currency.toLowerCase();
  return { reference, currency: code, amount: inHundredths(amount, code) };
}

// https://docs.stripe.com/currencies#minor-units
const WITHOUT_DECIMALS = new Set("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" "));
const WITH_THREE_DECIMALS = new Set("bhd jod kwd omr tnd".split(" "));

/** An amount of the smallest unit that Stripe has of a currency, in hundredths of the currency: a decimal where it is no whole number of them. */
export function inHundredths(minor: number, currency: string): string {
  const units = BigInt(minor);
  if (WITHOUT_DECIMALS.has(currency)) {
    return String(units * 100n);
  }
  if (WITH_THREE_DECIMALS.has(currency)) {
    const rest = units % 10n;
    return `${units / 10n}${rest === 0n ? "" : `.${rest}`}`;
  }
  return String(units);
}

const unreadable = (error: z.ZodError): ReadEvent => ({
  kind: "unreadable",
  reason: `the event lacks what its type has, or it is wrong: ${[...new Set(error.issues.map(({ path }) => path.join(".") || "body"))].join(", ")}`,
});
