import {
  beginInvoicing,
  connectLedger,
  countRefusedPaymentEvents,
  createWebhook,
  findInvoice,
  insertOrganization,
  issueCreditNote,
  issueInvoice,
  type Ledger,
  listBlockedOrganizations,
  listBlocks,
  listInvoicePayments,
  listOverdueOrganizations,
  listUnpaidOrganizations,
  listWebhookDeliveries,
  migrateToLatest,
  type OverdueTerms,
  payInvoice,
  recordJobRuns,
  recordOverdue,
  retireUnmatchedPayments,
  reversePayment,
  setOrganizationBlocked,
  settleCycle,
} from "@slipway/ledger";
import { signedHeaders } from "@slipway/process";
import { sql } from "kysely";
import Stripe from "stripe";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exampleBody, type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { jobRun } from "../../../test/kit/ledger/charged-rows.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";

/** Webhooks of payments over HTTP, and what overdue invoices block, in a real PostgreSQL. */

const JANUARY = new Date("2026-01-01T00:00:00Z");
const FEBRUARY = new Date("2026-02-01T00:00:00Z");
/** One for each test, whose invoice is due as soon as it is issued. */
const ORGANIZATIONS = Array.from({ length: 60 }, (_, index) => `org${index}`);
const TERMS: OverdueTerms = { noticeDays: [7, 1], blockDays: 14 };
const TOTAL = 301n;
const { webhooks } = new Stripe("sk_test_none");

let postgres: TestPostgres;
let ledger: Ledger;
let harness: FakeHarness;
let stripeSecrets = ["whsec_0123456789abcdef"];
const GENERIC = `whsec_${Buffer.alloc(32, "k").toString("base64")}`;

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  harness = await startFakeHarness({
    ledger,
    payments: { stripe: () => stripeSecrets, generic: () => [GENERIC] },
  });
  await beginInvoicing(ledger, JANUARY);
  for (const id of ORGANIZATIONS) {
    await insertOrganization(ledger, { id, name: id });
  }
  await recordJobRuns(
    ledger,
    [JANUARY, FEBRUARY].flatMap((month) =>
      ORGANIZATIONS.map((organization_id) =>
        jobRun({
          organization_id,
          scheduled_at: new Date(month.getTime() + 3_600_000),
          price_per_minute: "301",
        }),
      ),
    ),
  );
  await settleCycle(ledger, JANUARY);
  await settleCycle(ledger, FEBRUARY);
});
afterAll(async () => {
  await harness?.close();
  await ledger?.destroy();
  await postgres?.stop();
});

let next = 0;
/** An organization with an invoice that is open. */
async function invoiced(): Promise<{ id: string; number: string }> {
  const id = ORGANIZATIONS[next] as string;
  next += 1;
  const number = await issue(id, "2026-01-01", 0);
  await createWebhook(
    ledger,
    {
      ...{
        id: `w-${id}`,
        organization_id: id,
        url: "https://hooks.example.com/",
        host: "hooks.example.com:443",
      },
      ...{ description: null, project_ids: null },
      event_types: ["invoice.due", "invoice.overdue", "organization.blocked", "organization.unblocked"],
    },
    20,
  );
  return { id, number };
}

const invoicedAgain = (id: string, dueDays: number) => issue(id, "2026-02-01", dueDays);

async function issue(organizationId: string, cycle: string, dueDays: number): Promise<string> {
  const terms = { issuer: "", dueDays, taxes: { default: [], countries: {} } };
  return (await issueInvoice(ledger, { organizationId, cycle }, terms)) ?? "";
}

let events = 0;
const newEvent = () => `evt_${++events}`;

interface Sent {
  eventId?: string;
  type?: string;
  reference?: string;
  amount?: number;
  currency?: string;
  secret?: string;
  ageSeconds?: number;
  object?: object;
  livemode?: boolean;
  app?: FakeHarness["app"];
}

/** Sends an event as Stripe does: signed by its own library. */
function stripe(invoice: string, change: Sent = {}) {
  const payload = JSON.stringify({
    id: change.eventId ?? newEvent(),
    object: "event",
    livemode: change.livemode ?? true,
    type: change.type ?? "payment_intent.succeeded",
    created: Math.floor(Date.now() / 1_000),
    data: {
      object: {
        ...{ id: change.reference ?? `pi_${invoice}`, amount_received: change.amount ?? Number(TOTAL) },
        ...{ currency: change.currency ?? "brl", metadata: { slipway_invoice: invoice } },
        ...change.object,
      },
    },
  });
  const signature = webhooks.generateTestHeaderString({
    payload,
    secret: change.secret ?? (stripeSecrets[0] as string),
    timestamp: Math.floor(Date.now() / 1_000) - (change.ageSeconds ?? 0),
  });
  return post("stripe", payload, { "stripe-signature": signature }, change.app);
}

/** A refund of all of a payment or of a part, as of a charge without metadata unless it names an invoice. */
function refund(number: string, change: Sent & { part?: number; names?: string } = {}) {
  const { reference = `pi_${number}`, amount = Number(TOTAL), part, names, ...sent } = change;
  const refunded = { amount_refunded: part ?? amount, refunded: part === undefined };
  const metadata = names === undefined ? {} : { slipway_invoice: names };
  const object = { id: "ch_1", payment_intent: reference, ...refunded, metadata };
  return stripe(number, { ...sent, type: "charge.refunded", object });
}

function generic(body: object, id = newEvent()) {
  const payload = JSON.stringify(body);
  return post("generic", payload, signedHeaders({ id, at: new Date(), payload }, [GENERIC]));
}

const post = (form: string, payload: string, headers: Record<string, string>, app = harness.app) =>
  app.inject({
    method: "POST",
    url: `/v1/payment-webhooks/${form}`,
    headers: { "content-type": "application/json", ...headers },
    payload,
  });

const outcomeOf = async (sent: ReturnType<typeof post>) => {
  const answer = await sent;
  const { data, code } = answer.json();
  return [answer.statusCode, data?.outcome ?? code, ...(data?.code ? [data.code] : [])];
};
const paid = async (number: string) => (await findInvoice(ledger, number))?.paidCents;
const create = (id: string) =>
  harness.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: { ...harness.key(id, "project.create on organization:*") },
    payload: exampleBody(),
  });
const read = async (id: string, number: string) => {
  const headers = harness.key(id, "organization.invoices.read on organization:*");
  const answer = await harness.app.inject({ url: `/v1/organization/invoices/${number}`, headers });
  return answer.json().data;
};
const notified = async (id: string) => {
  const all = { organizationId: id, webhookId: `w-${id}`, status: undefined, limit: 50, offset: 0 };
  const { deliveries } = await listWebhookDeliveries(ledger, all);
  return deliveries.map(({ event_type }) => event_type).toReversed();
};

describe("a payment webhook", () => {
  // Shows: docs/invoices.md#payment-webhooks: `POST /v1/payment-webhooks/stripe`
  // Shows: docs/invoices.md#payment-webhooks: an event is recorded once by its id
  test("of Stripe pays an invoice once, however often and concurrently it is sent", async () => {
    const { number } = await invoiced();
    const eventId = newEvent();
    const answers = await Promise.all([1, 2, 3, 4].map(() => outcomeOf(stripe(number, { eventId }))));
    expect(answers.map(([, outcome]) => outcome).toSorted()).toEqual([
      "applied",
      "duplicate",
      "duplicate",
      "duplicate",
    ]);
    expect(await outcomeOf(stripe(number, { eventId }))).toEqual([200, "duplicate"]);
    expect(await listInvoicePayments(ledger, number)).toMatchObject([
      { kind: "payment", reference: `pi_${number}`, amountCents: TOTAL },
    ]);
  });

  // Shows: docs/invoices.md#payment-webhooks: a payment that several events report is one
  test("of Stripe about the same payment under another event pays nothing more", async () => {
    const { number } = await invoiced();
    const session = {
      ...{ id: "cs_1", payment_intent: `pi_${number}`, payment_status: "paid", amount_total: Number(TOTAL) },
    };
    const answers = await Promise.all([
      outcomeOf(stripe(number)),
      outcomeOf(stripe(number, { type: "checkout.session.completed", object: session })),
    ]);
    expect(answers).toEqual([
      [200, "applied"],
      [200, "applied"],
    ]);
    expect(await paid(number)).toBe(TOTAL);
  });

  // Shows: docs/invoices.md#payment-webhooks: `POST /v1/payment-webhooks/generic`
  test("of the generic form pays an invoice, and takes the payment back", async () => {
    const { number } = await invoiced();
    const data = { invoice: number, reference: "bank-7", currency: "BRL", amount: String(TOTAL) };
    expect(await outcomeOf(generic({ type: "payment.received", data }))).toEqual([200, "applied"]);
    expect(await paid(number)).toBe(TOTAL);
    expect(await outcomeOf(generic({ type: "payment.reversed", data }))).toEqual([200, "applied"]);
    expect(await paid(number)).toBe(0n);
    expect(await outcomeOf(generic({ type: "payment.received", data }))).toEqual([
      200,
      "refused",
      "PAYMENT_TAKEN_BACK",
    ]);
  });

  // Shows: docs/invoices.md#payment-webhooks: `charge.refunded`
  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_UNKNOWN`, `PAYMENT_REFUND_PARTIAL`
  // Shows: docs/invoices.md#payment-webhooks: others, and what names no invoice
  test("of a refund takes back the whole payment, and reports one of a part", async () => {
    const { number } = await invoiced();
    await stripe(number);
    expect(await outcomeOf(refund(number, { part: 100 }))).toEqual([
      200,
      "refused",
      "PAYMENT_REFUND_PARTIAL",
    ]);
    expect(await paid(number)).toBe(TOTAL);
    expect(await outcomeOf(stripe(number))).toEqual([200, "applied"]);
    expect(await outcomeOf(refund(number))).toEqual([200, "applied"]);
    expect(await paid(number)).toBe(0n);
    expect(await outcomeOf(refund(number, { reference: "pi_of_other_business" }))).toEqual([200, "ignored"]);
  });

  // Shows: docs/invoices.md#payment-webhooks: a refund that comes before its payment
  test("of a payment whose refund named no invoice and came before it pays nothing", async () => {
    const [whole, part] = [await invoiced(), await invoiced()];
    const reported = await countRefusedPaymentEvents(ledger);
    const eventId = newEvent();
    for (let times = 0; times < 2; times += 1) {
      expect(await outcomeOf(refund(whole.number, { eventId }))).toEqual([200, "ignored"]);
    }
    expect(await outcomeOf(refund(part.number, { part: 100 }))).toEqual([200, "ignored"]);
    expect(await countRefusedPaymentEvents(ledger)).toBe(reported);
    expect(await outcomeOf(stripe(whole.number))).toEqual([200, "refused", "PAYMENT_TAKEN_BACK"]);
    expect(await outcomeOf(stripe(part.number))).toEqual([200, "refused", "PAYMENT_REFUND_PARTIAL"]);
    expect([await paid(whole.number), await paid(part.number)]).toEqual([0n, 0n]);
    expect(await countRefusedPaymentEvents(ledger)).toBe(reported + 2);
  });

  test("is not barred by a refund of another invoice or amount under its reference", async () => {
    const [one, other] = [await invoiced(), await invoiced()];
    const data = { invoice: one.number, reference: "bank-9", currency: "BRL", amount: String(TOTAL) };
    const wrong = [
      { ...data, invoice: other.number },
      { ...data, amount: "7" },
      { ...data, currency: "USD" },
    ];
    for (const given of wrong) {
      expect(await outcomeOf(generic({ type: "payment.reversed", data: given }))).toEqual([
        ...[200, "refused", "PAYMENT_UNKNOWN"],
      ]);
    }
    expect(await outcomeOf(generic({ type: "payment.received", data }))).toEqual([200, "applied"]);
  });

  // Shows: docs/ledger.md#tables: `payment_events`
  test("of a refund of other business is removed by retention, and no other event by anything", async () => {
    const { number } = await invoiced();
    await stripe(number);
    const [eventId, kept] = [newEvent(), newEvent()];
    await refund(number, { eventId, reference: "pi_of_a_shop" });
    const between = new Date();
    await eventually("a later moment of the ledger", async () => {
      const { rows } = await sql<{ later: boolean }>`select now() > ${between} as later`.execute(ledger);
      return rows[0]?.later;
    });
    await refund(number, { eventId: kept, reference: "pi_of_a_shop" });
    const count = async (which = sql`true`) => {
      const { rows } = await sql<{ count: number }>`
        select count(*)::int as count from payment_events where ${which}`.execute(ledger);
      return rows[0]?.count;
    };
    const matched = await count(sql`outcome <> 'unmatched'`);
    await expect(sql`delete from payment_events where event_id = ${eventId}`.execute(ledger)).rejects.toThrow(
      "append-only",
    );
    expect(await retireUnmatchedPayments(ledger, between)).toBeGreaterThan(0);
    expect(await count(sql`event_id = ${eventId}`)).toBe(0);
    expect(await count(sql`event_id = ${kept}`)).toBe(1);
    expect(await count(sql`outcome <> 'unmatched'`)).toBe(matched);
    await expect(
      ledger.transaction().execute(async (transaction) => {
        await sql`select set_config('slipway.retire_before', ${inDays(1).toISOString()}, true)`.execute(
          transaction,
        );
        await sql`delete from payment_events where invoice_number = ${number}`.execute(transaction);
      }),
    ).rejects.toThrow("append-only");
  });

  // Shows: docs/operations/alerts.md#slipwaypaymentsnotapplied: `not_open`
  test("of a refund of what was refused changes nothing, and is reported where a person recorded it otherwise", async () => {
    const { number } = await invoiced();
    await stripe(number);
    const reference = `pi_second_${number}`;
    expect(await outcomeOf(stripe(number, { reference }))).toEqual([
      ...[200, "refused", "PAYMENT_INVOICE_NOT_OPEN"],
    ]);
    const answer = (await refund(number, { reference })).json();
    expect(answer).toEqual({
      ...{ status: "success", message: "the event is recorded", data: { outcome: "applied" } },
    });
    expect(await paid(number)).toBe(TOTAL);
    const { number: short } = await invoiced();
    expect(await outcomeOf(stripe(short, { amount: 200 }))).toEqual([
      ...[200, "refused", "PAYMENT_AMOUNT_MISMATCH"],
    ]);
    await payInvoice(ledger, { number: short, reference: "by-hand", amountCents: 200n });
    expect(await outcomeOf(refund(short, { amount: 200 }))).toEqual([200, "refused", "PAYMENT_UNKNOWN"]);
  });

  // Shows: docs/operations/alerts.md#slipwaypaymentsnotapplied: Record by hand under the event's reference
  test("of a refund takes back what a person recorded under the event's reference", async () => {
    const { number } = await invoiced();
    await stripe(number, { amount: 200 });
    await payInvoice(ledger, { number, reference: `pi_${number}`, amountCents: 200n });
    expect(await outcomeOf(refund(number, { amount: 200 }))).toEqual([200, "applied"]);
    expect(await paid(number)).toBe(0n);
  });

  // Shows: docs/operations/alerts.md#slipwaypaymentsnotapplied: `partial_refund`
  test("of the rest of a refund is reported once a person has recorded the part under another reference", async () => {
    const { number } = await invoiced();
    await stripe(number);
    await refund(number, { part: 100 });
    await reversePayment(ledger, { number, reference: `pi_${number}` });
    await payInvoice(ledger, { number, reference: "rest", amountCents: 201n });
    expect(await outcomeOf(refund(number, { part: 150 }))).toEqual([
      200,
      "refused",
      "PAYMENT_REFUND_PARTIAL",
    ]);
    expect(await outcomeOf(refund(number))).toEqual([200, "refused", "PAYMENT_UNKNOWN"]);
  });

  // Shows: docs/invoices.md#payment-webhooks: `refund.failed`, `refund.updated`, `charge.refund.updated`
  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_REFUND_FAILED`
  // Shows: docs/operations/alerts.md#slipwaypaymentsnotapplied: `refund_failed`
  test("of a refund that failed is reported, and so is what is refunded after it", async () => {
    const { number } = await invoiced();
    await stripe(number);
    await refund(number);
    const object = { id: "re_1", payment_intent: `pi_${number}`, amount: 301, metadata: {} };
    const changed = (type: string, status: string) =>
      outcomeOf(stripe(number, { type, object: { ...object, status } }));
    expect(await changed("refund.updated", "succeeded")).toEqual([200, "ignored"]);
    expect(await changed("refund.failed", "failed")).toEqual([200, "refused", "PAYMENT_REFUND_FAILED"]);
    expect(await paid(number)).toBe(0n);
    await payInvoice(ledger, { number, reference: "again" });
    expect(await outcomeOf(refund(number))).toEqual([200, "refused", "PAYMENT_UNKNOWN"]);
  });

  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_OF_OTHER_INVOICE`
  test("of one payment of Stripe pays one invoice, whichever another event of it names", async () => {
    const [one, other] = [await invoiced(), await invoiced()];
    expect(await outcomeOf(stripe(one.number))).toEqual([200, "applied"]);
    expect(await outcomeOf(stripe(other.number, { reference: `pi_${one.number}` }))).toEqual([
      ...[200, "refused", "PAYMENT_OF_OTHER_INVOICE"],
    ]);
    expect(await paid(other.number)).toBe(0n);
  });

  // Shows: docs/invoices.md#payment-webhooks: a refund of Stripe is of the invoice
  test("of a refund takes back the payment of the invoice that has it, whichever it names", async () => {
    const [one, other] = [await invoiced(), await invoiced()];
    const reference = `pi_${one.number}`;
    await stripe(one.number);
    await stripe(other.number, { reference });
    expect(await outcomeOf(refund(one.number, { names: other.number }))).toEqual([200, "applied"]);
    expect([await paid(one.number), await paid(other.number)]).toEqual([0n, 0n]);
    expect(await outcomeOf(stripe(other.number, { reference }))).toEqual([
      ...[200, "refused", "PAYMENT_OF_OTHER_INVOICE"],
    ]);
  });

  // Shows: docs/invoices.md#payment-webhooks: a refund of Stripe is of the invoice
  test("of a refund takes back what a person recorded of an event that never came", async () => {
    const { number } = await invoiced();
    await payInvoice(ledger, { number, reference: `pi_${number}` });
    expect(await outcomeOf(refund(number))).toEqual([200, "applied"]);
    expect(await paid(number)).toBe(0n);
    const failed = {
      id: "re_1",
      payment_intent: `pi_${number}`,
      amount: 301,
      status: "failed",
      metadata: {},
    };
    expect(await outcomeOf(stripe(number, { type: "refund.failed", object: failed }))).toEqual([
      ...[200, "refused", "PAYMENT_REFUND_FAILED"],
    ]);
    const { number: other } = await invoiced();
    expect(await outcomeOf(stripe(other, { reference: `pi_${number}` }))).toEqual([
      ...[200, "refused", "PAYMENT_TAKEN_BACK"],
    ]);
  });

  // Shows: docs/operations/alerts.md#slipwaypaymentsnotapplied: `other_invoice`
  test("of a refund takes back what a person moved to another invoice, and reports it under another name", async () => {
    const [one, other] = [await invoiced(), await invoiced()];
    const reference = `pi_${one.number}`;
    await stripe(one.number);
    await stripe(other.number, { reference });
    await reversePayment(ledger, { number: one.number, reference });
    await payInvoice(ledger, { number: other.number, reference });
    expect(await outcomeOf(refund(one.number, { names: one.number }))).toEqual([200, "applied"]);
    expect(await paid(other.number)).toBe(0n);
    const { number } = await invoiced();
    await stripe(number);
    await reversePayment(ledger, { number, reference: `pi_${number}` });
    await payInvoice(ledger, { number, reference: "corrected" });
    expect(await outcomeOf(refund(number))).toEqual([200, "refused", "PAYMENT_UNKNOWN"]);
  });

  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_OF_OTHER_INVOICE`
  test("of a payment that a person recorded of another invoice pays nothing, until that one is taken back", async () => {
    const [one, other] = [await invoiced(), await invoiced()];
    const payment = { number: one.number, reference: `pi_${other.number}` };
    await payInvoice(ledger, payment);
    const refused = [200, "refused", "PAYMENT_OF_OTHER_INVOICE"];
    expect(await outcomeOf(stripe(other.number))).toEqual(refused);
    expect(await paid(other.number)).toBe(0n);
    await reversePayment(ledger, payment);
    expect(await outcomeOf(stripe(other.number))).toEqual([200, "applied"]);
    expect(await paid(other.number)).toBe(301n);
  });

  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_TAKEN_BACK`
  test("of a payment whose refund came before it pays nothing", async () => {
    const { number } = await invoiced();
    const object = { id: "ch_1", payment_intent: `pi_${number}`, amount_refunded: 301, refunded: true };
    expect(await outcomeOf(stripe(number, { type: "charge.refunded", object }))).toEqual([
      200,
      "refused",
      "PAYMENT_UNKNOWN",
    ]);
    expect(await outcomeOf(stripe(number))).toEqual([200, "refused", "PAYMENT_TAKEN_BACK"]);
    expect(await paid(number)).toBe(0n);
  });

  // Shows: docs/invoices.md#payment-webhooks: a refund that comes before its payment
  test("of a payment whose refund of a part came before it and named its invoice pays nothing", async () => {
    const { number } = await invoiced();
    const refused = [200, "refused", "PAYMENT_REFUND_PARTIAL"];
    expect(await outcomeOf(refund(number, { part: 100, names: number }))).toEqual(refused);
    expect(await outcomeOf(stripe(number))).toEqual(refused);
    expect(await paid(number)).toBe(0n);
  });

  // Shows: docs/invoices.md#payment-webhooks: a payment is recorded when currency and amount are exactly
  // Shows: docs/invoices.md#payment-webhooks: one that does not fit its invoice is in the ledger
  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_INVOICE_UNKNOWN`
  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_AMOUNT_MISMATCH`, `PAYMENT_CURRENCY_MISMATCH`
  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_INVOICE_NOT_OPEN`
  test("that does not fit its invoice is recorded, counted and changes nothing", async () => {
    const { number } = await invoiced();
    const cases: [Sent & { invoice?: string }, string][] = [
      [{ amount: 300 }, "PAYMENT_AMOUNT_MISMATCH"],
      [{ amount: 302 }, "PAYMENT_AMOUNT_MISMATCH"],
      [{ currency: "usd" }, "PAYMENT_CURRENCY_MISMATCH"],
      [{ currency: "jpy" }, "PAYMENT_CURRENCY_MISMATCH"],
      [{ invoice: "2099-000001" }, "PAYMENT_INVOICE_UNKNOWN"],
      [{ invoice: "'; drop table invoices; --", reference: "pi_x" }, "PAYMENT_INVOICE_UNKNOWN"],
    ];
    for (const [change, code] of cases) {
      expect(await outcomeOf(stripe(change.invoice ?? number, change))).toEqual([200, "refused", code]);
    }
    expect(await paid(number)).toBe(0n);
    expect(await outcomeOf(stripe(number))).toEqual([200, "applied"]);
    expect(await outcomeOf(stripe(number, { reference: "pi_other" }))).toEqual([
      200,
      "refused",
      "PAYMENT_INVOICE_NOT_OPEN",
    ]);
    const { rows } = await sql<{ outcome: string }>`
      select outcome from payment_events where claimed_invoice = ${number} and outcome <> 'applied' order by recorded_at`.execute(
      ledger,
    );
    expect(rows.map(({ outcome }) => outcome)).toEqual([
      ...["wrong_amount", "wrong_amount", "wrong_currency", "wrong_currency", "not_open"],
    ]);
    const metrics = await harness.services.metrics.registry.metrics();
    expect(metrics).toMatch(
      /slipway_api_payment_webhooks_total\{provider="stripe",outcome="refused"\} [1-9]/,
    );
  });

  test("of what was paid by hand under the same reference changes nothing", async () => {
    const { number } = await invoiced();
    await payInvoice(ledger, { number, reference: `pi_${number}` });
    expect(await outcomeOf(stripe(number))).toEqual([200, "applied"]);
    expect(await paid(number)).toBe(TOTAL);
  });

  // Shows: docs/invoices.md#payment-webhooks: 200 | `PAYMENT_TEST_MODE`
  test("of Stripe's test mode is refused, and counts where that is set", async () => {
    const { number } = await invoiced();
    const test = { livemode: false };
    expect(await outcomeOf(stripe(number, test))).toEqual([200, "refused", "PAYMENT_TEST_MODE"]);
    expect(await outcomeOf(refund(number, test))).toEqual([200, "ignored"]);
    const named = { metadata: { slipway_invoice: number }, payment_intent: `pi_${number}` };
    const object = { ...named, id: "ch_1", amount_refunded: 301, refunded: true };
    expect(await outcomeOf(stripe(number, { ...test, type: "charge.refunded", object }))).toEqual([
      ...[200, "refused", "PAYMENT_TEST_MODE"],
    ]);
    const { number: other } = await invoiced();
    const accepting = await startFakeHarness({
      ...{ ledger, acceptsStripeTests: true, payments: { stripe: () => stripeSecrets } },
    });
    try {
      expect(await outcomeOf(stripe(other, { ...test, app: accepting.app }))).toEqual([200, "applied"]);
    } finally {
      await accepting.close();
    }
    // What a test mode reported has no part in what really was paid.
    expect(await outcomeOf(stripe(number))).toEqual([200, "applied"]);
  });

  // Shows: docs/invoices.md#payment-webhooks: a body is at most 256 KiB, and two events
  test("waits for two others that are recorded, whatever form they have", async () => {
    const { id, number } = await invoiced();
    const { recording } = harness.services.payments;
    const data = { invoice: number, reference: "bank-1", currency: "BRL", amount: "1" };
    const sent: ReturnType<typeof outcomeOf>[] = [];
    await ledger.transaction().execute(async (transaction) => {
      await sql`select from organizations where id = ${id} for update`.execute(transaction);
      sent.push(
        ...["a", "b"].map((reference) => outcomeOf(stripe(number, { reference }))),
        ...["c", "d"].map((reference) =>
          outcomeOf(generic({ type: "payment.received", data: { ...data, reference } })),
        ),
      );
      // It waits for the row that is locked here, as long as the other transaction is open.
      await eventually("two that wait for the ledger", async () => {
        const { rows } = await sql<{ count: number }>`
          select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock'`.execute(ledger);
        return (rows[0]?.count ?? 0) >= 2;
      });
      expect(recording.inUse).toBe(2);
    });
    const answers = await Promise.all(sent);
    expect(answers.map(([status]) => status)).toEqual([200, 200, 200, 200]);
  });

  // Shows: docs/invoices.md#payment-webhooks: several secrets sign at a time
  test("is signed with any secret of now: a renewed one is one without a restart", async () => {
    const { number } = await invoiced();
    const [old] = stripeSecrets as [string];
    const renewed = "whsec_fedcba9876543210";
    expect(await outcomeOf(stripe(number, { secret: renewed }))).toEqual([401, "PAYMENT_WEBHOOK_UNSIGNED"]);
    stripeSecrets = [renewed, old];
    expect(await outcomeOf(stripe(number, { secret: old, amount: 1 }))).toEqual([
      ...[200, "refused", "PAYMENT_AMOUNT_MISMATCH"],
    ]);
    expect(await outcomeOf(stripe(number, { secret: renewed }))).toEqual([200, "applied"]);
    stripeSecrets = [renewed];
    expect(await outcomeOf(stripe(number, { secret: old }))).toEqual([401, "PAYMENT_WEBHOOK_UNSIGNED"]);
  });

  // Shows: docs/invoices.md#payment-webhooks: 401 | `PAYMENT_WEBHOOK_UNSIGNED`
  // Shows: docs/invoices.md#payment-webhooks: 400 | `MALFORMED_BODY`
  // Shows: docs/invoices.md#payment-webhooks: nothing of a body is read before its signature is verified
  test("is refused unsigned, old, changed, or signed for the other form", async () => {
    const { number } = await invoiced();
    expect(await outcomeOf(stripe(number, { ageSeconds: 301 }))).toEqual([401, "PAYMENT_WEBHOOK_UNSIGNED"]);
    const payload = "{}";
    const headers = signedHeaders({ id: "evt", at: new Date(), payload }, [GENERIC]);
    for (const sent of [
      post("stripe", payload, {}),
      post("stripe", payload, headers),
      post("generic", "{} ", headers),
      post("generic", payload, { ...headers, "webhook-id": "other" }),
    ]) {
      expect(await outcomeOf(sent)).toEqual([401, "PAYMENT_WEBHOOK_UNSIGNED"]);
    }
    expect(await outcomeOf(post("generic", payload, headers))).toEqual([400, "MALFORMED_BODY"]);
  });

  // Shows: docs/invoices.md#payment-webhooks: a body is at most 256 KiB
  test("is bounded, and not there where the platform has no secret", async () => {
    const large = await post("stripe", `"${"x".repeat(256 * 1024)}"`, { "stripe-signature": "t=1,v1=00" });
    expect(statusAndCode(large)).toEqual([413, "BODY_TOO_LARGE"]);
    // A thousand times as many in tests.
    expect(large.headers["ratelimit-policy"]).toBe('"default";q=600000;w=60');
    const without = await startFakeHarness({ payments: {} });
    try {
      const answer = await without.app.inject({
        method: "POST",
        url: "/v1/payment-webhooks/stripe",
        payload: "{}",
      });
      expect(statusAndCode(answer)).toEqual([404, "ROUTE_NOT_FOUND"]);
    } finally {
      await without.close();
    }
  });

  // Shows: docs/invoices.md#payment-webhooks: 503 | `LEDGER_UNAVAILABLE`
  test("that the ledger cannot record is to be sent again", async () => {
    const away = await startFakeHarness({ payments: { generic: () => [GENERIC] } });
    try {
      const data = { invoice: "2026-000001", reference: "r", currency: "brl", amount: "1" };
      const payload = JSON.stringify({ type: "payment.received", data });
      const answer = await away.app.inject({
        ...{ method: "POST", url: "/v1/payment-webhooks/generic", payload },
        headers: signedHeaders({ id: "evt", at: new Date(), payload }, [GENERIC]),
      });
      expect(statusAndCode(answer)).toEqual([503, "LEDGER_UNAVAILABLE"]);
      expect(await away.services.metrics.registry.metrics()).toContain(
        'slipway_api_payment_webhooks_total{provider="generic",outcome="unavailable"} 1\n',
      );
    } finally {
      await away.close();
    }
  });

  // Shows: docs/invoices.md#payment-webhooks: an event is recorded once by its id
  test("whose event cannot be recorded is not paid, and is once it is sent again", async () => {
    const { number } = await invoiced();
    const eventId = newEvent();
    await sql`
      create function refuse_event() returns trigger language plpgsql as $$ begin raise 'not now'; end $$`.execute(
      ledger,
    );
    await sql`
      create trigger refuse before insert on payment_events for each row when (new.event_id = ${sql.lit(eventId)})
      execute function refuse_event()`.execute(ledger);
    try {
      expect((await stripe(number, { eventId })).statusCode).toBe(503);
      expect(await listInvoicePayments(ledger, number)).toEqual([]);
    } finally {
      await sql`drop trigger refuse on payment_events`.execute(ledger);
    }
    expect(await outcomeOf(stripe(number, { eventId }))).toEqual([200, "applied"]);
  });
});

const DAY_MS = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);

describe("an overdue invoice", () => {
  /** Notifies of it, and blocks its organization. */
  async function block(id: string): Promise<void> {
    await recordOverdue(ledger, id, TERMS, inDays(0.01));
    expect(await recordOverdue(ledger, id, TERMS, inDays(14.1))).toEqual({ notices: 0, blocks: 1 });
  }

  // Shows: docs/invoices.md#over-v1: `blocks_at` is when the organization is blocked
  // Shows: docs/invoices.md#overdue: a blocked organization gets `organization.blocked`
  // Shows: docs/invoices.md#overdue: it is unblocked, with `organization.unblocked`
  // Shows: docs/webhooks.md#events: `invoice.due`, `invoice.overdue`
  // Shows: docs/webhooks.md#events: `organization.blocked`, `organization.unblocked`
  test("is notified of once, blocks its organization, and unblocks it when a webhook pays", async () => {
    const { id, number } = await invoiced();
    const at = inDays(0.01);
    const recorded = await Promise.all([1, 2, 3].map(() => recordOverdue(ledger, id, TERMS, at)));
    expect(recorded.reduce((sum, { notices }) => sum + notices, 0)).toBe(1);
    expect(await listOverdueOrganizations(ledger, [id], TERMS, at)).toEqual([]);
    expect(await listOverdueOrganizations(ledger, [id], TERMS, inDays(7.1))).toEqual([id]);
    await recordOverdue(ledger, id, TERMS, inDays(13.1));
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
    const blocksAt = new Date((await findInvoice(ledger, number))?.dueAt.getTime() ?? 0);
    blocksAt.setTime(blocksAt.getTime() + 14 * DAY_MS);
    expect(await read(id, number)).toMatchObject({ status: "overdue", blocks_at: blocksAt.toISOString() });
    const blocks = await Promise.all([1, 2].map(() => recordOverdue(ledger, id, TERMS, inDays(14.1))));
    expect(blocks.reduce((sum, { blocks }) => sum + blocks, 0)).toBe(1);
    expect(statusAndCode(await create(id))).toEqual([402, "ORGANIZATION_BLOCKED"]);
    expect(await listBlocks(ledger, { limit: 100, offset: 0 })).toContainEqual({
      ...{ id, byAdministrator: false, overdueSince: expect.any(Date), invoices: [number] },
    });
    expect(await outcomeOf(stripe(number))).toEqual([200, "applied"]);
    expect(await read(id, number)).not.toHaveProperty("blocks_at");
    await harness.namespace(id);
    expect((await create(id)).statusCode).toBe(201);
    expect(await notified(id)).toEqual([
      ...["invoice.overdue", "invoice.overdue", "organization.blocked", "organization.unblocked"],
    ]);
    expect(await listOverdueOrganizations(ledger, [id], TERMS, inDays(30))).toEqual([]);
  });

  test("is read in rounds until it is paid, and again once that is taken back", async () => {
    const { id, number } = await invoiced();
    const isRead = async () =>
      (await listUnpaidOrganizations(ledger, { after: "", limit: 500 })).includes(id);
    expect(await isRead()).toBe(true);
    await payInvoice(ledger, { number, reference: "a", amountCents: 300n });
    expect(await isRead()).toBe(true);
    await issueCreditNote(ledger, { number, reference: "c", reason: "the rest", netCents: 1n });
    expect(await isRead()).toBe(false);
    await reversePayment(ledger, { number, reference: "a" });
    expect(await isRead()).toBe(true);
  });

  // Shows: docs/invoices.md#overdue: credit notes that cover an invoice count as payments
  test("counts as paid when a credit note covers it", async () => {
    const { id, number } = await invoiced();
    await block(id);
    await issueCreditNote(ledger, { number, reference: "c", reason: "a part", netCents: 100n });
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([id]);
    await issueCreditNote(ledger, { number, reference: "c2", reason: "the rest" });
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
  });

  // Shows: docs/invoices.md#overdue: a block by an administrator stays
  test("that is paid leaves a block by an administrator as it is", async () => {
    const { id, number } = await invoiced();
    await block(id);
    await setOrganizationBlocked(ledger, id, true);
    expect(await outcomeOf(stripe(number))).toEqual([200, "applied"]);
    expect(statusAndCode(await create(id))).toEqual([402, "ORGANIZATION_BLOCKED"]);
    expect(await notified(id)).toEqual(["invoice.overdue", "organization.blocked"]);
    expect(await setOrganizationBlocked(ledger, id, false)).toEqual({ waived: [] });
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
  });

  // Shows: docs/invoices.md#overdue: it is unblocked, with `organization.unblocked`
  test("that is paid unblocks while another one is to block later, and not while it is to block by now", async () => {
    const { id, number } = await invoiced();
    const later = await invoicedAgain(id, 10);
    await recordOverdue(ledger, id, TERMS, inDays(0.01));
    await recordOverdue(ledger, id, TERMS, inDays(10.1));
    expect(await recordOverdue(ledger, id, TERMS, inDays(14.1))).toMatchObject({ blocks: 1 });
    expect(await outcomeOf(stripe(number))).toEqual([200, "applied"]);
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
    expect(await recordOverdue(ledger, id, TERMS, inDays(24.2))).toMatchObject({ blocks: 1 });
    await payInvoice(ledger, { number: later, reference: "r" });
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
  });

  test("that is paid does not unblock while another one blocks, too", async () => {
    const { id, number } = await invoiced();
    const other = await invoicedAgain(id, 0);
    await block(id);
    await payInvoice(ledger, { number, reference: "r" });
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([id]);
    await payInvoice(ledger, { number: other, reference: "r" });
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
  });

  // Shows: docs/webhooks.md#events: `invoice.due`, `invoice.overdue`
  test("that an administrator has waived is notified of again without a time at which it blocks", async () => {
    const { id, number } = await invoiced();
    await block(id);
    await setOrganizationBlocked(ledger, id, false);
    await payInvoice(ledger, { number, reference: "r" });
    await reversePayment(ledger, { number, reference: "r" });
    expect(await recordOverdue(ledger, id, TERMS, inDays(20))).toEqual({ notices: 1, blocks: 0 });
    const all = { organizationId: id, webhookId: `w-${id}`, status: undefined, limit: 50, offset: 0 };
    const { deliveries } = await listWebhookDeliveries(ledger, all);
    const notices = deliveries.filter(({ event_type: type }) => type === "invoice.overdue");
    const [again, first] = notices.map(({ payload }) => JSON.parse(payload).data);
    expect(first).toMatchObject({ invoice_id: number, open_amount: "301", blocks_at: expect.any(String) });
    expect(again).toMatchObject({ invoice_id: number, open_amount: "301" });
    expect(again).not.toHaveProperty("blocks_at");
  });

  // Shows: docs/invoices.md#overdue: an invoice whose payment is taken back
  test("whose payment is taken back keeps its organization blocked no more, though it was blocked for it", async () => {
    const { id, number } = await invoiced();
    const other = await invoicedAgain(id, 0);
    await block(id);
    await payInvoice(ledger, { number, reference: "r" });
    await reversePayment(ledger, { number, reference: "r" });
    expect(await listBlocks(ledger, { limit: 100, offset: 0 })).toContainEqual(
      expect.objectContaining({ id, invoices: [other] }),
    );
    await payInvoice(ledger, { number: other, reference: "r" });
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
  });

  // Shows: docs/invoices.md#overdue: `admin organization unblock` ends both
  test("blocks no more once an administrator has unblocked its organization", async () => {
    const { id, number } = await invoiced();
    await block(id);
    expect(await setOrganizationBlocked(ledger, id, false)).toEqual({ waived: [number] });
    expect(await read(id, number)).not.toHaveProperty("blocks_at");
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
    expect(await recordOverdue(ledger, id, TERMS, inDays(20))).toEqual({ notices: 0, blocks: 0 });
  });

  // Shows: docs/invoices.md#overdue: an invoice whose payment is taken back
  test("whose payment is taken back is notified of again before it blocks", async () => {
    const { id, number } = await invoiced();
    await block(id);
    await payInvoice(ledger, { number, reference: "r" });
    await reversePayment(ledger, { number, reference: "r" });
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
    expect(await recordOverdue(ledger, id, TERMS, inDays(20))).toEqual({ notices: 1, blocks: 0 });
    expect(await recordOverdue(ledger, id, TERMS, inDays(20.9))).toEqual({ notices: 0, blocks: 0 });
    expect(await recordOverdue(ledger, id, TERMS, inDays(21.1))).toEqual({ notices: 0, blocks: 1 });
  });

  test("that is paid while it would block blocks nothing, whichever comes first", async () => {
    const { id, number } = await invoiced();
    await recordOverdue(ledger, id, TERMS, inDays(0.01));
    await Promise.all([
      recordOverdue(ledger, id, TERMS, inDays(15)),
      stripe(number),
      recordOverdue(ledger, id, TERMS, inDays(15)),
    ]);
    expect(await paid(number)).toBe(TOTAL);
    expect(await listBlockedOrganizations(ledger, [id])).toEqual([]);
  });
});
