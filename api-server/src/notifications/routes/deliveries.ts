import { defineRoute } from "../../http/route.ts";
import {
  deliveriesQuery,
  deliveriesResponses,
  listDeliveries,
  queuedResponses,
  redeliver,
  sendTest,
} from "../deliveries.ts";
import { webhookKind } from "../receiver-kinds.ts";
import { MAX_CONCURRENT, TAGS, webhookOf } from "./webhooks.ts";

export const listWebhookDeliveriesRoute = defineRoute({
  operationId: "listWebhookDeliveries",
  method: "GET",
  path: "/v1/organization/webhooks/:webhookId/deliveries",
  summary: "List the deliveries of a webhook",
  description: "The newest first. One that has ended is kept for 30 days.",
  tags: TAGS,
  query: deliveriesQuery,
  responses: deliveriesResponses,
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => listDeliveries(await webhookOf(call, services), call.query, services),
});

export const redeliverWebhookRoute = defineRoute({
  operationId: "redeliverWebhook",
  method: "POST",
  path: "/v1/organization/webhooks/:webhookId/deliveries/:deliveryId/redeliver",
  summary: "Send an event again that a webhook has got, or has not",
  description: "Under the same id, with a new signature. One that is pending is not sent a second time.",
  tags: TAGS,
  responses: queuedResponses,
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => redeliver(webhookKind, await webhookOf(call, services), call, services),
});

export const testWebhook = defineRoute({
  operationId: "testWebhook",
  method: "POST",
  path: "/v1/organization/webhooks/:webhookId/test",
  summary: "Send an event of the type webhook.test to a webhook",
  tags: TAGS,
  responses: queuedResponses,
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => sendTest(webhookKind, await webhookOf(call, services), services),
});
