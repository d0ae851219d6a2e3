/** The bodies of webhooks' routes. */

import { z } from "zod";
import { matching, text } from "../fields.ts";
import { PROJECT_ID } from "../names.ts";
import { setOf } from "../rule.ts";

/** Types of events that a webhook may subscribe to. */
export const eventTypes = [
  "deployment.succeeded",
  "deployment.failed",
  "build.succeeded",
  "build.failed",
  "run.failed",
  "run.missed",
  "project.crash_loop",
  "backup.completed",
  "backup.failed",
  "certificate.issued",
  "certificate.failed",
  "alert.firing",
  "alert.resolved",
  "budget.reached",
  "invoice.due",
  "invoice.overdue",
  "organization.blocked",
  "organization.unblocked",
] as const;
export type EventType = (typeof eventTypes)[number];

/** Longest URL of a webhook, in characters. */
export const WEBHOOK_URL_MAX_LENGTH = 1_024;
/** Projects that one webhook names. */
export const WEBHOOK_PROJECTS_MAX = 100;

const url = text(
  1,
  WEBHOOK_URL_MAX_LENGTH,
  "Where events are sent: https://, without a credential or a fragment. The URL is no secret; the signature is what a receiver trusts.",
);
const description = text(1, 256, "What the webhook is for.");
/** Types that a webhook or a recipient of e-mail subscribes to. */
export const subscribed = setOf(
  z.array(z.enum(eventTypes).describe("Type of an event.")).min(1).max(eventTypes.length),
).describe("Types of the events that are sent.");
/** Projects that it names. */
export const projectIds = setOf(
  z
    .array(matching(PROJECT_ID, "must be a project's id", 40, "Id of a project.").min(1))
    .min(1)
    .max(WEBHOOK_PROJECTS_MAX),
).describe("Projects whose events are sent.");

/** The same where it is changed. */
export const changedProjectIds = projectIds
  .nullable()
  .describe("Projects whose events are sent; null: those of all.");

export const createWebhookBody = z.strictObject({
  url,
  description: description.optional(),
  event_types: subscribed,
  project_ids: projectIds.describe("Projects whose events are sent; absent, those of all.").optional(),
});

export const patchWebhookBody = z
  .strictObject({
    url: url.optional(),
    description: description.nullable().describe("What the webhook is for; null removes it.").optional(),
    event_types: subscribed.optional(),
    project_ids: changedProjectIds.optional(),
    enabled: z
      .boolean()
      .describe(
        "False gives up what waits for it; true sends to it again, also after the platform has disabled it.",
      )
      .optional(),
  })
  .refine((body) => Object.keys(body).length > 0, { message: "must have at least one member" })
  .meta({ minProperties: 1 });
