/** Payment webhooks on the stack: its Secret is what they are signed with, and an invoice that is not there is not paid. */
import { randomBytes } from "node:crypto";
import { signedHeaders } from "@slipway/process";
import Stripe from "stripe";
import { beforeAll, expect, test } from "vitest";
import { paymentSecrets, systemNamespace } from "../../hack/stack/chart.ts";
import { cluster } from "./support/cluster.ts";
import { admin } from "./support/organization.ts";
import { stack } from "./support/stack.ts";

const NOBODYS = "2099-000001";
const { webhooks } = new Stripe("sk_test_none");

let secret = "";
beforeAll(async () => {
  const { data } = await cluster.core.readNamespacedSecret({
    name: paymentSecrets.name,
    namespace: systemNamespace,
  });
  secret = Buffer.from(data?.[paymentSecrets.key] ?? "", "base64").toString("utf8");
});

async function post(form: string, payload: string, headers: Record<string, string>) {
  const answer = await fetch(`${stack.url}/v1/payment-webhooks/${form}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: payload,
  });
  const { code, data } = (await answer.json()) as {
    code?: string;
    data?: { outcome: string; code?: string };
  };
  return [answer.status, data?.outcome ?? code, data?.code];
}
const newId = () => `evt_${randomBytes(12).toString("hex")}`;

/** A payment of an invoice that is not there, as Stripe reports it. */
const stripePayment = (id: string, livemode: boolean) =>
  JSON.stringify({
    ...{ id, livemode, type: "payment_intent.succeeded", created: Math.floor(Date.now() / 1_000) },
    data: {
      object: { id: "pi_1", amount_received: 1, currency: "brl", metadata: { slipway_invoice: NOBODYS } },
    },
  });

test("an event that Stripe's library signs is taken once and listed, and another secret's is refused", async () => {
  const id = newId();
  const payload = stripePayment(id, true);
  const signed = (by: string, what = payload) => ({
    "stripe-signature": webhooks.generateTestHeaderString({ payload: what, secret: by }),
  });
  expect(await post("stripe", payload, signed("whsec_other"))).toEqual([
    401,
    "PAYMENT_WEBHOOK_UNSIGNED",
    undefined,
  ]);
  expect(await post("stripe", payload, signed(secret))).toEqual([200, "refused", "PAYMENT_INVOICE_UNKNOWN"]);
  expect(await post("stripe", payload, signed(secret))).toEqual([200, "duplicate", undefined]);
  const test = stripePayment(newId(), false);
  expect(await post("stripe", test, signed(secret, test))).toEqual([200, "refused", "PAYMENT_TEST_MODE"]);
  const { events } = await admin<{ events: object[] }>(
    ...["invoice", "events", "--refused", "--invoice", NOBODYS],
  );
  expect(events).toContainEqual(expect.objectContaining({ event_id: id, outcome: "unknown_invoice" }));
});

test("so is one of the generic form", async () => {
  const data = { invoice: NOBODYS, reference: "bank-1", currency: "BRL", amount: "1" };
  const payload = JSON.stringify({ type: "payment.received", data });
  const headers = signedHeaders({ id: newId(), at: new Date(), payload }, [secret]);
  expect(await post("generic", payload, headers)).toEqual([200, "refused", "PAYMENT_INVOICE_UNKNOWN"]);
  expect(await post("generic", payload, headers)).toEqual([200, "duplicate", undefined]);
  expect(await post("generic", `${payload} `, headers)).toEqual([401, "PAYMENT_WEBHOOK_UNSIGNED", undefined]);
});
