import { defineRoute } from "../../http/route.ts";
import {
  deliveriesQuery,
  deliveriesResponses,
  listDeliveries,
  queuedResponses,
  redeliver,
  sendTest,
} from "../deliveries.ts";
import { emailKind } from "../receiver-kinds.ts";
import { EMAIL_TAGS, recipientOf, requireEmail } from "./email-recipients.ts";
import { MAX_CONCURRENT } from "./webhooks.ts";

export const listEmailDeliveries = defineRoute({
  operationId: "listEmailDeliveries",
  method: "GET",
  path: "/v1/organization/email-recipients/:recipientId/deliveries",
  summary: "List the mails to a recipient",
  description: "The newest first. One that has ended is kept for 30 days.",
  tags: EMAIL_TAGS,
  query: deliveriesQuery,
  responses: deliveriesResponses,
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => listDeliveries(await recipientOf(call, services), call.query, services),
});

export const redeliverEmail = defineRoute({
  operationId: "redeliverEmail",
  method: "POST",
  path: "/v1/organization/email-recipients/:recipientId/deliveries/:deliveryId/redeliver",
  summary: "Send a mail about an event again",
  description: "With the same Message-ID.",
  tags: EMAIL_TAGS,
  responses: queuedResponses,
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    requireEmail(services);
    return redeliver(emailKind, await recipientOf(call, services), call, services);
  },
});

export const testEmailRecipient = defineRoute({
  operationId: "testEmailRecipient",
  method: "POST",
  path: "/v1/organization/email-recipients/:recipientId/test",
  summary: "Send a mail of the type email.test to a recipient",
  tags: EMAIL_TAGS,
  responses: queuedResponses,
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    requireEmail(services);
    return sendTest(emailKind, await recipientOf(call, services), services);
  },
});
