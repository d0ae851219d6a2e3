import { randomBytes } from "node:crypto";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";

/** Of now, in both forms. */
function signatures(): Record<string, string> {
  const now = Math.floor(Date.now() / 1_000);
  return {
    "stripe-signature": `t=${now},v1=${randomBytes(32).toString("hex")}`,
    "webhook-id": "evt_1",
    "webhook-timestamp": String(now),
    "webhook-signature": `v1,${randomBytes(32).toString("base64")}`,
  };
}

/** The stack has secrets for them. */
export const payments: Attack = {
  name: "payments",
  about: "40 clients that send 100 kB to payment webhooks, with invented signatures of now",
  seconds: 8,
  expected: ["401", "429", "503"],
  required: ["401 PAYMENT_WEBHOOK_UNSIGNED"],
  prepare: async ({ url }) => {
    const paid = {
      object: {
        id: "pi_1",
        amount_received: 1,
        currency: "brl",
        metadata: { slipway_invoice: "2026-000001" },
      },
    };
    const body = JSON.stringify({
      id: "evt_1",
      livemode: true,
      type: "payment_intent.succeeded",
      data: paid,
      more: "c".repeat(100_000),
    });
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 40,
            count: 20_000,
            next: (index) => ({
              method: "POST",
              path: `/v1/payment-webhooks/${index % 2 === 0 ? "stripe" : "generic"}`,
              headers: signatures(),
              body,
            }),
          },
          signal,
        ),
    };
  },
};
