/** What a reported payment, or refund of one, changes of its invoice: nothing, unless it is exactly what is to be paid, or what was. Pure. */

export interface PaymentEvent {
  provider: "stripe" | "generic";
  /** The provider's id of it: the same when it is sent again. */
  eventId: string;
  /** As the provider names it. */
  eventType: string;
  /** `refund_failed`: what a refund gave back has come back. */
  kind: "payment" | "refund" | "refund_failed";
  /** The number of the invoice; absent of a refund that names its payment alone. */
  invoice?: string | undefined;
  /** Names the payment, also in the event of its refund. */
  reference: string;
  /** In lower case. */
  currency: string;
  /** What was paid or given back, in hundredths of the currency; a decimal where it is no whole number of them. */
  amount: string;
  /** Of a refund, that it is of a part of the payment. */
  isPartial?: boolean;
  /** That it is of the provider's test mode, where such events are refused: no money has moved. */
  isTest?: boolean;
  occurredAt: Date;
}

/**
 * `applied`: the invoice has the payment, or it was taken back. `already`: it was so before. `unmatched`: a refund of a payment that is not reported yet,
 * or of no invoice. All others changed nothing and are reported.
 */
export const paymentOutcomes = [
  "applied",
  "already",
  "unmatched",
  "unknown_invoice",
  "wrong_currency",
  "wrong_amount",
  "not_open",
  "taken_back",
  "partial_refund",
  "unknown_payment",
  "refund_failed",
  "other_invoice",
  "test_mode",
] as const;
export type PaymentOutcome = (typeof paymentOutcomes)[number];
/** Of an event whose invoice is known. */
export type DecidedOutcome = Exclude<PaymentOutcome, "unmatched">;

/** What the provider reported of the same payment before. */
export interface EarlierEvent {
  kind: PaymentEvent["kind"];
  /** Absent of one that named none, whose payment was not known. */
  invoice: string | undefined;
  currency: string;
  amount: string;
  isPartial: boolean;
  outcome: PaymentOutcome;
}

/** What is known of an event's invoice and payment. */
export interface KnownPayment {
  /** Undefined where there is no such invoice. */
  invoice: { number: string; currency: string; openCents: bigint } | undefined;
  /** What the invoice has under the event's reference. */
  payment: { amountCents: bigint; isReversed: boolean } | undefined;
  /** Of the same payment: of Stripe's all, of a name that several payments may have those of this or no invoice. */
  earlier: readonly EarlierEvent[];
  /** Whether another invoice has, or by an event had, a payment of this name. */
  isElsewhere: boolean;
  /** Of a refund whose payment was refused or taken back: that a person recorded one since it was reported that may be it. */
  isByHand: boolean;
}

/** What becomes of an event. */
export function paymentOutcome(event: PaymentEvent, known: KnownPayment): DecidedOutcome {
  switch (event.kind) {
    case "payment":
      return outcomeOfPayment(event, known);
    case "refund":
      return outcomeOfRefund(event, known);
    case "refund_failed":
      return "refund_failed";
  }
}

type Sum = Pick<EarlierEvent, "currency" | "amount"> & { isPartial?: boolean };

/** Whether a refund gives back all of a payment. */
const isWhole = (refund: Sum, payment: Sum): boolean =>
  refund.isPartial !== true && refund.currency === payment.currency && refund.amount === payment.amount;

function outcomeOfPayment(
  event: PaymentEvent,
  { invoice, payment, earlier, isElsewhere }: KnownPayment,
): DecidedOutcome {
  if (invoice === undefined) {
    return "unknown_invoice";
  }
  if (event.currency !== invoice.currency.toLowerCase()) {
    return "wrong_currency";
  }
  if (payment?.isReversed) {
    return "taken_back";
  }
  if (payment !== undefined) {
    return event.amount === String(payment.amountCents) ? "already" : "wrong_amount";
  }
  // A name of Stripe's is of one payment. A bank's may be of a transfer that pays several invoices.
  if (isElsewhere && event.provider === "stripe") {
    return "other_invoice";
  }
  const refunds = earlier.filter(({ kind }) => kind === "refund");
  if (refunds.some((refund) => isWhole(refund, event))) {
    return "taken_back";
  }
  // Of all others, one that named an invoice was reported when it came.
  if (
    refunds.some(
      ({ invoice: named, isPartial, currency }) =>
        named === undefined || (isPartial && currency === event.currency),
    )
  ) {
    return "partial_refund";
  }
  if (invoice.openCents === 0n) {
    return "not_open";
  }
  return event.amount === String(invoice.openCents) ? "applied" : "wrong_amount";
}

function outcomeOfRefund(
  event: PaymentEvent,
  { invoice, payment, earlier, isByHand }: KnownPayment,
): DecidedOutcome {
  if (payment === undefined) {
    const refused = earlier.filter(({ kind }) => kind === "payment");
    if (!isByHand && refused.some((one) => isWhole(event, one))) {
      return "already";
    }
    if (invoice === undefined) {
      return "unknown_invoice";
    }
    return event.isPartial && refused.length === 0 ? "partial_refund" : "unknown_payment";
  }
  if (invoice !== undefined && event.currency !== invoice.currency.toLowerCase()) {
    return "wrong_currency";
  }
  if (payment.isReversed) {
    return outcomeOfAnotherRefund(event, { earlier, isByHand });
  }
  if (event.isPartial) {
    return "partial_refund";
  }
  return event.amount === String(payment.amountCents) ? "applied" : "wrong_amount";
}

/** A refund of what was taken back: it may be one of what a person recorded of the same money since, under another reference. */
function outcomeOfAnotherRefund(
  event: PaymentEvent,
  { earlier, isByHand }: Pick<KnownPayment, "earlier" | "isByHand">,
): DecidedOutcome {
  const hasFailed = earlier.some(({ kind }) => kind === "refund_failed");
  const isOurs = earlier.some(({ kind, outcome }) => kind === "refund" && outcome === "applied");
  if (isOurs && !hasFailed) {
    return "already";
  }
  if (event.isPartial) {
    return "partial_refund";
  }
  const wasPartial = earlier.some(({ outcome }) => outcome === "partial_refund");
  return isByHand || hasFailed || wasPartial ? "unknown_payment" : "already";
}
