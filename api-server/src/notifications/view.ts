import { eventTypes, WEBHOOK_ID } from "@slipway/crds";
import type { Webhook, WebhookDelivery } from "@slipway/ledger";
import { z } from "zod";

const DISABLED = ["failing", "gone", "requested"] as const;

/** A webhook as `/v1` shows it: without its secret. */
export const webhookSchema = z.object({
  id: z.string().regex(WEBHOOK_ID),
  url: z.string(),
  description: z.string().optional(),
  event_types: z.array(z.enum(eventTypes)),
  project_ids: z.array(z.string()).optional().describe("Absent: those of all projects."),
  enabled: z.boolean(),
  disabled_reason: z
    .enum(DISABLED)
    .optional()
    .describe(
      "failing: no attempt succeeded for 5 days. gone: the receiver answered 410. requested: a client switched it off.",
    ),
  disabled_at: z.string().optional(),
  failing_since: z.string().optional().describe("Since when no attempt has succeeded."),
  dropped_events: z.int().describe("Events that were over the organization's bounds, and were not sent."),
  created_at: z.string(),
  updated_at: z.string(),
});

export function webhookView(webhook: Webhook): z.output<typeof webhookSchema> {
  const { description, project_ids, disabled_at, failing_since } = webhook;
  const reason = DISABLED.find((one) => one === webhook.disabled_reason);
  return {
    id: webhook.id,
    url: webhook.url,
    ...(description === null ? {} : { description }),
    event_types: eventTypes.filter((type) => webhook.event_types.includes(type)),
    ...(project_ids === null ? {} : { project_ids }),
    enabled: disabled_at === null,
    ...(disabled_at === null ? {} : { disabled_at: disabled_at.toISOString() }),
    ...(reason === undefined ? {} : { disabled_reason: reason }),
    ...(failing_since === null ? {} : { failing_since: failing_since.toISOString() }),
    dropped_events: Number(webhook.dropped_events),
    created_at: webhook.created_at.toISOString(),
    updated_at: webhook.updated_at.toISOString(),
  };
}

/** One with its secret: in the answer that it is created or rotated in, and in no other. */
export const webhookWithSecretSchema = webhookSchema.extend({
  secret: z.string().describe("What deliveries are signed with. Shown in this answer alone."),
});

export const deliveryStatuses = ["pending", "succeeded", "failed"] as const;

/** The delivery of one event to one webhook. */
export const deliverySchema = z.object({
  id: z.string().describe("The event's id, which is the `webhook-id` of every attempt."),
  event_type: z.string(),
  project_id: z.string().optional(),
  status: z.enum(deliveryStatuses),
  attempts: z.int().describe("Since it began, or was last sent again on request."),
  created_at: z.string(),
  attempted_at: z.string().optional().describe("When the last attempt ended."),
  next_attempt_at: z.string().optional().describe("Of one that is pending."),
  finished_at: z.string().optional(),
  response_code: z.int().optional().describe("HTTP status of the last answer."),
  response_body: z.string().optional().describe("Its first 1,024 bytes."),
  error: z.string().optional().describe("Why there was no answer to the last attempt: a stable word."),
  payload: z.string().describe("What is sent, as it is signed."),
});

export function deliveryView(delivery: WebhookDelivery): z.output<typeof deliverySchema> {
  const { project_id, attempted_at, finished_at, response_code, response_body, error, status } = delivery;
  return {
    id: delivery.event_id,
    event_type: delivery.event_type,
    ...(project_id === null ? {} : { project_id }),
    status,
    attempts: delivery.attempts,
    created_at: delivery.created_at.toISOString(),
    ...(attempted_at === null ? {} : { attempted_at: attempted_at.toISOString() }),
    ...(status === "pending" ? { next_attempt_at: delivery.due_at.toISOString() } : {}),
    ...(finished_at === null ? {} : { finished_at: finished_at.toISOString() }),
    ...(response_code === null ? {} : { response_code }),
    ...(response_body === null || response_body === "" ? {} : { response_body }),
    ...(error === null ? {} : { error }),
    payload: delivery.payload,
  };
}
