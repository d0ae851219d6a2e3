import { expect, test } from "vitest";
import { type EarlierEvent, type KnownPayment, type PaymentEvent, paymentOutcome } from "./payment-rule.ts";

const PAYMENT: PaymentEvent = {
  ...{ provider: "stripe", eventId: "evt_1", eventType: "a", kind: "payment", invoice: "2026-000001" },
  ...{ reference: "pi_1", currency: "brl", amount: "301", occurredAt: new Date(0) },
};
const REFUND: PaymentEvent = { ...PAYMENT, kind: "refund", isPartial: false };
const PART: PaymentEvent = { ...REFUND, isPartial: true, amount: "100" };
const OPEN: KnownPayment = {
  invoice: { number: "2026-000001", currency: "BRL", openCents: 301n },
  ...{ payment: undefined, earlier: [], isElsewhere: false, isByHand: false },
};
const PAID: KnownPayment = {
  ...OPEN,
  invoice: { number: "2026-000001", currency: "BRL", openCents: 0n },
  payment: { amountCents: 301n, isReversed: false },
};
const REVERSED: KnownPayment = { ...OPEN, payment: { amountCents: 301n, isReversed: true } };
const before = (
  event: PaymentEvent,
  outcome: EarlierEvent["outcome"],
  change: Partial<EarlierEvent> = {},
): EarlierEvent => ({
  ...{ kind: event.kind, invoice: event.invoice, currency: event.currency, amount: event.amount },
  ...{ isPartial: event.isPartial ?? false, outcome, ...change },
});
const none = { invoice: undefined };
const failed = before({ ...REFUND, kind: "refund_failed" }, "refund_failed");

test.each<[string, PaymentEvent, KnownPayment, string]>([
  ["is what is open", PAYMENT, OPEN, "applied"],
  ["comes again", PAYMENT, PAID, "already"],
  [
    "was refunded before, without an invoice",
    PAYMENT,
    after(OPEN, before(REFUND, "unmatched", none)),
    "taken_back",
  ],
  [
    "was refunded before, with its invoice",
    PAYMENT,
    after(OPEN, before(REFUND, "unknown_payment")),
    "taken_back",
  ],
  [
    "was refunded in part before, without an invoice",
    PAYMENT,
    after(OPEN, before(PART, "unmatched", none)),
    "partial_refund",
  ],
  [
    "was refunded in part before, with its invoice",
    PAYMENT,
    after(OPEN, before(PART, "partial_refund")),
    "partial_refund",
  ],
  [
    "had a refund of another amount, which was reported",
    PAYMENT,
    after(OPEN, before({ ...REFUND, amount: "7" }, "unknown_payment")),
    "applied",
  ],
  [
    "had a refund of another currency, which was reported",
    PAYMENT,
    after(OPEN, before({ ...REFUND, currency: "usd" }, "wrong_currency")),
    "applied",
  ],
  ["has paid another invoice", PAYMENT, { ...OPEN, isElsewhere: true }, "other_invoice"],
  [
    "is a transfer that has paid another invoice, too",
    { ...PAYMENT, provider: "generic" },
    { ...OPEN, isElsewhere: true },
    "applied",
  ],
])("a payment that %s", (_, event, known, outcome) => {
  expect(paymentOutcome(event, known)).toBe(outcome);
});

test.each<[string, PaymentEvent, KnownPayment, string]>([
  ["of all of it", REFUND, PAID, "applied"],
  ["of a part", PART, PAID, "partial_refund"],
  ["of another amount", { ...REFUND, amount: "300" }, PAID, "wrong_amount"],
  ["that comes again", REFUND, after(REVERSED, before(REFUND, "applied")), "already"],
  ["of a part that comes after the one of all", PART, after(REVERSED, before(REFUND, "applied")), "already"],
  ["that a person recorded before", REFUND, REVERSED, "already"],
  [
    "of what a person took back and recorded otherwise",
    REFUND,
    { ...REVERSED, isByHand: true },
    "unknown_payment",
  ],
  [
    "that comes again, after a person recorded another payment",
    REFUND,
    { ...after(REVERSED, before(REFUND, "applied")), isByHand: true },
    "already",
  ],
  ["of a part of what a person took back", PART, REVERSED, "partial_refund"],
  [
    "of the rest, after a person recorded a part",
    REFUND,
    after(REVERSED, before(PART, "partial_refund")),
    "unknown_payment",
  ],
  ["after one that failed", REFUND, after(REVERSED, before(REFUND, "applied"), failed), "unknown_payment"],
  ["of what was refused", REFUND, after(OPEN, before(PAYMENT, "not_open")), "already"],
  [
    "of what was refused for its currency",
    { ...REFUND, currency: "usd" },
    after(OPEN, before({ ...PAYMENT, currency: "usd" }, "wrong_currency")),
    "already",
  ],
  [
    "of what was refused for its invoice",
    REFUND,
    { ...after(OPEN, before(PAYMENT, "unknown_invoice")), invoice: undefined },
    "already",
  ],
  ["of a part of what was refused", PART, after(OPEN, before(PAYMENT, "wrong_amount")), "unknown_payment"],
  [
    "of what was refused and recorded by hand",
    REFUND,
    { ...after(OPEN, before(PAYMENT, "wrong_amount")), isByHand: true },
    "unknown_payment",
  ],
  ["of nothing that is known", REFUND, OPEN, "unknown_payment"],
  ["of a part of what is not reported yet", PART, OPEN, "partial_refund"],
  ["of no invoice that is known", REFUND, { ...OPEN, invoice: undefined }, "unknown_invoice"],
  ["that failed", { ...REFUND, kind: "refund_failed" }, PAID, "refund_failed"],
])("a refund %s", (_, event, known, outcome) => {
  expect(paymentOutcome(event, known)).toBe(outcome);
});

function after(known: KnownPayment, ...earlier: EarlierEvent[]): KnownPayment {
  return { ...known, earlier };
}
