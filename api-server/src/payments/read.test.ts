import { describe, expect, it, test } from "vitest";
import { readGenericEvent } from "./generic.ts";
import { parseGenericSecrets, parseStripeSecrets } from "./secrets.ts";
import { inHundredths, readStripeEvent } from "./stripe.ts";

const metadata = { slipway_invoice: "2026-000042" };
const LIVE = { acceptsStripeTests: false };
const stripe = (type: string, object: object, livemode: unknown = true, settings = LIVE) => {
  const data = { object: { metadata, ...object } };
  return readStripeEvent({ id: "evt_1", livemode, type, created: 1_790_000_000, data }, settings);
};
const intent = { id: "pi_1", currency: "brl", amount_received: 31_600 };
const charge = {
  id: "ch_1",
  payment_intent: "pi_1",
  currency: "brl",
  amount_refunded: 31_600,
  refunded: true,
};

describe("an event of Stripe", () => {
  // Shows: docs/invoices.md#payment-webhooks: `invoice.paid`
  it.each([
    ["payment_intent.succeeded", intent, "pi_1"],
    ["invoice.paid", { id: "in_1", currency: "BRL", amount_paid: 31_600 }, "in_1"],
    ["invoice.paid", { id: "in_1", currency: "brl", amount_paid: 31_600, payment_intent: "pi_1" }, "pi_1"],
    [
      "checkout.session.completed",
      {
        id: "cs_1",
        currency: "brl",
        amount_total: 31_600,
        payment_status: "paid",
        payment_intent: { id: "pi_1" },
      },
      "pi_1",
    ],
    [
      "checkout.session.async_payment_succeeded",
      { id: "cs_1", currency: "brl", amount_total: 31_600, payment_status: "paid", payment_intent: null },
      "cs_1",
    ],
  ])("%s is a payment", (type, object, reference) => {
    expect(stripe(type, object)).toEqual({
      kind: "event",
      event: {
        ...{ provider: "stripe", eventId: "evt_1", eventType: type, kind: "payment" },
        ...{ invoice: "2026-000042", reference, currency: "brl", amount: "31600" },
        occurredAt: new Date(1_790_000_000_000),
      },
    });
  });

  it("charge.refunded is a refund, of a part where it says so", () => {
    expect(stripe("charge.refunded", charge)).toMatchObject({
      event: { kind: "refund", reference: "pi_1", amount: "31600", isPartial: false },
    });
    expect(stripe("charge.refunded", { ...charge, refunded: false })).toMatchObject({
      event: { isPartial: true },
    });
    expect(stripe("charge.refunded", { ...charge, metadata: null })).toMatchObject({
      event: { invoice: undefined },
    });
  });

  // Shows: docs/invoices.md#payment-webhooks: `refund.failed`, `refund.updated`, `charge.refund.updated`
  it.each(["refund.failed", "refund.updated", "charge.refund.updated"])(
    "%s is a refund that failed",
    (type) => {
      const refund = { id: "re_1", amount: 31_600, currency: "brl", charge: "ch_1", payment_intent: "pi_1" };
      const failed = stripe(type, { ...refund, status: "failed", metadata: {} });
      expect(failed).toMatchObject({
        event: { kind: "refund_failed", invoice: undefined, reference: "pi_1", amount: "31600" },
      });
      expect(stripe(type, { ...refund, payment_intent: null, status: "canceled" })).toMatchObject({
        event: { reference: "ch_1" },
      });
      expect(stripe(type, { ...refund, status: "succeeded" }).kind).toBe("ignored");
      const ofBalance = { ...refund, charge: null, payment_intent: null, status: "failed" };
      expect(stripe(type, ofBalance).kind).toBe("ignored");
      expect(stripe(type, { ...refund, amount: "1", status: "failed" }).kind).toBe("unreadable");
    },
  );

  it.each([
    ["customer.created", {}],
    ["toString", {}],
    ["payment_intent.succeeded", { ...intent, metadata: {} }],
    ["payment_intent.succeeded", { ...intent, metadata: { slipway_invoice: " " } }],
    [
      "checkout.session.completed",
      { id: "cs_1", currency: "brl", amount_total: 31_600, payment_status: "unpaid" },
    ],
  ])("%s is ignored", (type, object) => {
    expect(stripe(type, object)).toEqual({ kind: "ignored" });
  });

  it.each([
    { ...intent, amount_received: "31600" },
    { ...intent, amount_received: 316.5 },
    { ...intent, amount_received: 2 ** 53 },
    { ...intent, amount_received: -1 },
    { ...intent, currency: "real" },
    { ...intent, id: "pi 1" },
    { id: "pi_1" },
  ])("that is about an invoice and not whole is unreadable: %j", (object) => {
    expect(stripe("payment_intent.succeeded", object).kind).toBe("unreadable");
  });

  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_TEST_MODE`
  it("of the test mode is one where that is set", () => {
    const type = "payment_intent.succeeded";
    expect(stripe(type, intent)).not.toHaveProperty("event.isTest");
    expect(stripe(type, intent, false)).toHaveProperty("event.isTest", true);
    expect(stripe("charge.refunded", charge, false)).toHaveProperty("event.isTest", true);
    expect(stripe(type, intent, false, { acceptsStripeTests: true })).not.toHaveProperty("event.isTest");
    expect(stripe(type, intent, null).kind).toBe("unreadable");
  });

  it("names an invoice in characters that the ledger has", () => {
    const read = stripe("payment_intent.succeeded", {
      ...intent,
      metadata: { slipway_invoice: "\u0000ü".repeat(99) },
    });
    expect(read).toMatchObject({ event: { invoice: "?".repeat(64) } });
  });

  it.each([null, [], "text", { type: 1 }])("%j is none", (body) => {
    expect(readStripeEvent(body, LIVE)).toEqual({ kind: "ignored" });
  });
});

// Shows: docs/invoices.md#payment-webhooks: `invoice.paid`, `payment_intent.succeeded`
test.each([
  [31_600, "brl", "31600"],
  [1, "usd", "1"],
  [316, "jpy", "31600"],
  [3_160, "kwd", "316"],
  [3_165, "kwd", "316.5"],
  [Number.MAX_SAFE_INTEGER, "jpy", "900719925474099100"],
])("%d of Stripe in %s are %s hundredths", (minor, currency, hundredths) => {
  expect(inHundredths(minor, currency)).toBe(hundredths);
});

describe("an event of the generic form", () => {
  const now = new Date("2026-11-30T12:00:00Z");
  const data = { invoice: "2026-000042", reference: "bank-7", currency: "BRL", amount: "31600" };
  const read = (body: unknown) => readGenericEvent(body, "evt_1", now);

  it("is a payment, or one that was given back", () => {
    expect(read({ type: "payment.received", data })).toEqual({
      kind: "event",
      event: {
        ...{ provider: "generic", eventId: "evt_1", eventType: "payment.received", kind: "payment" },
        ...{ ...data, currency: "brl", occurredAt: now },
      },
    });
    const timestamp = "2026-11-29T10:00:00-03:00";
    expect(read({ type: "payment.reversed", timestamp, data })).toMatchObject({
      event: { kind: "refund", occurredAt: new Date("2026-11-29T13:00:00Z") },
    });
  });

  it.each([
    { amount: 31_600 },
    { amount: "316.00" },
    { amount: "0" },
    { amount: "-1" },
    { currency: "R$" },
    { reference: "" },
    { invoice: undefined },
  ])("is unreadable with %j", (change) => {
    expect(read({ type: "payment.received", data: { ...data, ...change } }).kind).toBe("unreadable");
  });

  it("is unreadable with a time that no ledger has", () => {
    for (const timestamp of ["0000-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "now"]) {
      expect(read({ type: "payment.received", timestamp, data }).kind).toBe("unreadable");
    }
  });

  it("of another type is ignored, and what has none is unreadable", () => {
    expect(read({ type: "payment.pending" }).kind).toBe("ignored");
    expect(read(null).kind).toBe("unreadable");
  });
});

describe("secrets", () => {
  const key = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;

  it("are read from a file, several while one is replaced", () => {
    expect(parseStripeSecrets(" whsec_0123456789abcdef\nwhsec_fedcba9876543210\n")).toHaveLength(2);
    expect(parseGenericSecrets(key)).toEqual([key]);
  });

  it.each(["", "whsec_short", "sk_live_0123456789abcdef", `${`${key} `.repeat(11)}`])(
    "are refused without being shown: %j",
    (text) => {
      let message = "";
      try {
        parseStripeSecrets(text);
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).not.toBe("");
      expect(message).not.toContain("0123456789abcdef");
    },
  );

  it("of the generic form are keys in base64", () => {
    expect(() => parseGenericSecrets("whsec_0123456789abcdef")).toThrow("base64");
    expect(() => parseGenericSecrets("whsec_not-base64-at-all-not-base64-at-all")).toThrow("base64");
  });
});
