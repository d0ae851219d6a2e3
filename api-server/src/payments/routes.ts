import { z } from "zod";
import { defineRoute } from "../http/route.ts";
import { success } from "../projects/routes/schemas.ts";
import { genericBody } from "./generic.ts";
import { type ReceivedPayment, receivePayment, refusalCodes } from "./receive.ts";
import type { PaymentProvider } from "./secrets.ts";

/** Bytes of the largest webhook that is read: an invoice of Stripe lists its lines. */
export const PAYMENT_WEBHOOK_LIMIT = 256 * 1024;

const MESSAGES = {
  applied: "the event is recorded",
  duplicate: "the event was recorded before",
  ignored: "the event is about no invoice",
  refused: "the event is recorded, and changes no invoice",
} as const satisfies Record<ReceivedPayment["outcome"], string>;

const COMMON =
  "Only where the platform has a secret for it. An event that comes again changes nothing again. One that does not fit its invoice is recorded and " +
  "reported to the platform's operators, and changes nothing: `outcome` is then `refused`, and `code` says why.";

function paymentRoute(provider: PaymentProvider) {
  return {
    method: "POST",
    tags: ["Invoices"],
    rawBody: true,
    bodyLimit: PAYMENT_WEBHOOK_LIMIT,
    bodies: "payments",
    isOffered: ({ payments }) => payments.secrets[provider] !== undefined,
    refusals: [404],
    responses: {
      200: {
        description: "Received.",
        schema: success({
          message: z.string(),
          data: z.object({
            outcome: z.enum(["applied", "duplicate", "ignored", "refused"]),
            code: z.enum(Object.values(refusalCodes)).optional(),
          }),
        }),
      },
    },
    handler: async ({ body, request }, services) => {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
      const webhook = { headers: request.headers, body: bytes };
      const data = await receivePayment(provider, webhook, services, () =>
        services.rateLimiter.giveBack(request.countedAs ?? ""),
      );
      return { status: 200, body: { status: "success", message: MESSAGES[data.outcome], data } };
    },
  } as const satisfies Partial<Parameters<typeof defineRoute>[0]>;
}

export const receiveStripePayment = defineRoute({
  ...paymentRoute("stripe"),
  operationId: "receiveStripePayment",
  path: "/v1/payment-webhooks/stripe",
  summary: "Take an event of Stripe",
  description:
    "Signed in `Stripe-Signature`. Payments and refunds of objects whose metadata has `slipway_invoice`, the number of an invoice; others are " +
    `ignored. ${COMMON}`,
  documentedBody: z.looseObject({}).describe("As Stripe sends it."),
});

export const receiveGenericPayment = defineRoute({
  ...paymentRoute("generic"),
  operationId: "receiveGenericPayment",
  path: "/v1/payment-webhooks/generic",
  summary: "Take a payment, or that one was given back",
  description: `Signed by Standard Webhooks, as webhooks of the platform are. ${COMMON}`,
  documentedBody: genericBody,
});
