import { EMAIL_RECIPIENT_ID, eventTypes } from "@slipway/crds";
import type { Webhook } from "@slipway/ledger";
import { z } from "zod";
import { webhookSchema, webhookView } from "./view.ts";

const DISABLED = ["failing", "requested", "unsubscribed"] as const;

/** A recipient of e-mail as `/v1` shows it. */
export const emailRecipientSchema = webhookSchema.omit({ url: true, description: true }).extend({
  id: z.string().regex(EMAIL_RECIPIENT_ID),
  email: z.string(),
  event_types: z.array(z.enum(eventTypes)),
  confirmed: z.boolean().describe("While it is not, nothing but codes is sent."),
  confirmed_at: z.string().optional(),
  disabled_reason: z
    .enum(DISABLED)
    .optional()
    .describe(
      "failing: no mail was taken for 5 days. unsubscribed: the recipient wants no more. requested: a client switched it off.",
    ),
});

export function emailRecipientView(recipient: Webhook): z.output<typeof emailRecipientSchema> {
  const { url: _url, description: _description, disabled_reason: _reason, ...view } = webhookView(recipient);
  const { confirmed_at: confirmedAt } = recipient;
  const reason = DISABLED.find((one) => one === recipient.disabled_reason);
  return {
    ...view,
    email: recipient.email ?? "",
    confirmed: confirmedAt !== null,
    ...(confirmedAt === null ? {} : { confirmed_at: confirmedAt.toISOString() }),
    ...(reason === undefined ? {} : { disabled_reason: reason }),
  };
}
