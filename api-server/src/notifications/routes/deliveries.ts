import { randomUUID } from "node:crypto";
import { type BegunDelivery, eventIdOf, type NotificationEvent, TEST_EVENT } from "@slipway/ledger";
import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/validate.ts";
import { pagination, success } from "../../projects/routes/schemas.ts";
import { deliverySchema, deliveryStatuses, deliveryView } from "../view.ts";
import { MAX_CONCURRENT, TAGS, webhookOf } from "./webhooks.ts";

export const listWebhookDeliveriesRoute = defineRoute({
  operationId: "listWebhookDeliveries",
  method: "GET",
  path: "/v1/organization/webhooks/:webhookId/deliveries",
  summary: "List the deliveries of a webhook",
  description: "The newest first. One that has ended is kept for 30 days.",
  tags: TAGS,
  query: z.strictObject({
    page: wholeNumber(1, 10_000).default(1),
    limit: wholeNumber(1, 50).default(20),
    status: z.enum(deliveryStatuses).optional(),
  }),
  responses: {
    200: {
      description: "One page of deliveries.",
      schema: success({ data: z.object({ deliveries: z.array(deliverySchema), pagination }) }),
    },
  },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { id: webhookId, organization_id: organizationId } = await webhookOf(call, services);
    const { page, limit, status } = call.query;
    const { total, deliveries } = await services.webhooks.deliveries({
      organizationId,
      webhookId,
      status,
      limit,
      offset: (page - 1) * limit,
    });
    const pages = { page, limit, total, pages: Math.ceil(total / limit) };
    const data = { deliveries: deliveries.map(deliveryView), pagination: pages };
    return { status: 200, headers: { "cache-control": "no-store" }, body: { status: "success", data } };
  },
});

/** @throws Failure 409 */
function refuseUnlessQueued(outcome: BegunDelivery): void {
  if (outcome === "disabled") {
    throw failures.webhookDisabled();
  }
  if (outcome === "full") {
    throw failures.webhookDeliveriesFull();
  }
}

const queued = {
  202: {
    description: "It is sent in the background.",
    schema: success({ message: z.string(), data: z.object({ id: z.string() }) }),
  },
};

export const redeliverWebhookRoute = defineRoute({
  operationId: "redeliverWebhook",
  method: "POST",
  path: "/v1/organization/webhooks/:webhookId/deliveries/:deliveryId/redeliver",
  summary: "Send an event again that a webhook has got, or has not",
  description: "Under the same id, with a new signature. One that is pending is not sent a second time.",
  tags: TAGS,
  responses: queued,
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const webhook = await webhookOf(call, services);
    const { deliveryId: eventId } = call.request.params as { deliveryId: string };
    const of = { organizationId: webhook.organization_id, webhookId: webhook.id, eventId };
    const outcome = await services.webhooks.redeliver(of);
    if (outcome === undefined) {
      throw failures.webhookDeliveryNotFound(eventId);
    }
    if (outcome === "pending") {
      throw failures.webhookDeliveryPending();
    }
    refuseUnlessQueued(outcome);
    return { status: 202, body: { status: "success", message: "delivery queued", data: { id: eventId } } };
  },
});

export const testWebhook = defineRoute({
  operationId: "testWebhook",
  method: "POST",
  path: "/v1/organization/webhooks/:webhookId/test",
  summary: "Send an event of the type webhook.test to a webhook",
  tags: TAGS,
  responses: queued,
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const webhook = await webhookOf(call, services);
    const event: NotificationEvent = {
      organizationId: webhook.organization_id,
      projectId: null,
      type: TEST_EVENT,
      key: randomUUID(),
      occurredAt: services.now(),
      data: { webhook_id: webhook.id },
    };
    const outcome = await services.webhooks.send(webhook, event);
    if (outcome === undefined) {
      throw failures.webhookNotFound(webhook.id);
    }
    refuseUnlessQueued(outcome);
    const id = eventIdOf(event);
    return { status: 202, body: { status: "success", message: "test event queued", data: { id } } };
  },
});
