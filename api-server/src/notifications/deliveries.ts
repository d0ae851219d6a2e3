import { randomUUID } from "node:crypto";
import { type BegunDelivery, eventIdOf, type NotificationEvent, type Webhook } from "@slipway/ledger";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { Answer } from "../http/exchange.ts";
import { wholeNumber } from "../http/validate.ts";
import { pagination, success } from "../projects/routes/schemas.ts";
import type { Services } from "../services.ts";
import type { AnyCall, KindOfReceiver } from "./receiver-kinds.ts";
import { deliverySchema, deliveryStatuses, deliveryView } from "./view.ts";

/** What routes about deliveries have in common, whatever they are delivered to. */

export const deliveriesQuery = z.strictObject({
  page: wholeNumber(1, 10_000).default(1),
  limit: wholeNumber(1, 50).default(20),
  status: z.enum(deliveryStatuses).optional(),
});

export const deliveriesResponses = {
  200: {
    description: "One page of deliveries.",
    schema: success({ data: z.object({ deliveries: z.array(deliverySchema), pagination }) }),
  },
};

export const queuedResponses = {
  202: {
    description: "It is sent in the background.",
    schema: success({ message: z.string(), data: z.object({ id: z.string() }) }),
  },
};

/** One page of a receiver's deliveries. */
export async function listDeliveries(
  { id: webhookId, organization_id: organizationId }: Webhook,
  { page, limit, status }: z.output<typeof deliveriesQuery>,
  { webhooks }: Pick<Services, "webhooks">,
): Promise<Answer> {
  const offset = (page - 1) * limit;
  const { total, deliveries } = await webhooks.deliveries({
    organizationId,
    webhookId,
    status,
    limit,
    offset,
  });
  const pages = { page, limit, total, pages: Math.ceil(total / limit) };
  const data = { deliveries: deliveries.map(deliveryView), pagination: pages };
  return { status: 200, headers: { "cache-control": "no-store" }, body: { status: "success", data } };
}

/** @throws Failure 409 */
function refuseUnlessQueued(outcome: BegunDelivery, { disabled }: KindOfReceiver): void {
  if (outcome === "disabled") {
    throw disabled();
  }
  if (outcome === "unconfirmed") {
    throw failures.emailRecipientUnconfirmed();
  }
  if (outcome === "full") {
    throw failures.webhookDeliveriesFull();
  }
}

/** Has the delivery of the path sent again. @throws Failure 404, 409 */
export async function redeliver(
  kind: KindOfReceiver,
  receiver: Webhook,
  { request }: AnyCall,
  { webhooks }: Pick<Services, "webhooks">,
): Promise<Answer> {
  const { deliveryId: eventId } = request.params as { deliveryId: string };
  const of = { organizationId: receiver.organization_id, webhookId: receiver.id, eventId };
  const outcome = await webhooks.redeliver(of);
  if (outcome === undefined) {
    throw kind.deliveryNotFound(eventId);
  }
  if (outcome === "pending") {
    throw failures.webhookDeliveryPending();
  }
  if (outcome === "confirmation") {
    throw failures.emailConfirmationNotRepeatable();
  }
  refuseUnlessQueued(outcome, kind);
  return { status: 202, body: { status: "success", message: "delivery queued", data: { id: eventId } } };
}

/** Has a test event sent. @throws Failure 404, 409 */
export async function sendTest(
  kind: KindOfReceiver,
  receiver: Webhook,
  { webhooks, now }: Pick<Services, "webhooks" | "now">,
): Promise<Answer> {
  const event: NotificationEvent = {
    organizationId: receiver.organization_id,
    projectId: null,
    type: kind.testEvent,
    key: randomUUID(),
    occurredAt: now(),
    data: { [kind.kind === "webhook" ? "webhook_id" : "recipient_id"]: receiver.id },
  };
  const outcome = await webhooks.send(receiver, event);
  if (outcome === undefined) {
    throw kind.notFound(receiver.id);
  }
  refuseUnlessQueued(outcome, kind);
  const id = eventIdOf(event);
  return { status: 202, body: { status: "success", message: "test event queued", data: { id } } };
}
