/** The bodies of the routes of recipients of e-mail. */

import { z } from "zod";
import { matching } from "../fields.ts";
import { changedProjectIds, projectIds, subscribed } from "./webhooks.ts";

/** Longest address, in characters. */
export const EMAIL_MAX_LENGTH = 254;

/**
 * An address as it is used in practice: ASCII, without quotes, comments, literals or lists. So nothing in it can end a header or name a
 * second recipient.
 */
export const EMAIL =
  /^[A-Za-z0-9_%+-]+(\.[A-Za-z0-9_%+-]+)*@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

/** The form of a confirmation code: two groups of four, of letters and digits that are not taken for each other. */
export const CONFIRMATION_CODE = /^[2-9A-HJ-NP-Z]{4}-[2-9A-HJ-NP-Z]{4}$/;

const email = matching(
  EMAIL,
  "must be an e-mail address",
  EMAIL_MAX_LENGTH,
  "Where events are sent, once the address is confirmed.",
).min(3);

export const createEmailRecipientBody = z.strictObject({
  email,
  event_types: subscribed,
  project_ids: projectIds.describe("Projects whose events are sent; absent, those of all.").optional(),
});

export const patchEmailRecipientBody = z
  .strictObject({
    event_types: subscribed.optional(),
    project_ids: changedProjectIds.optional(),
    enabled: z
      .boolean()
      .describe("False gives up what waits for it; true sends to it again, if it has confirmed.")
      .optional(),
  })
  .refine((body) => Object.keys(body).length > 0, { message: "must have at least one member" })
  .meta({ minProperties: 1 });

export const confirmEmailRecipientBody = z.strictObject({
  code: matching(
    CONFIRMATION_CODE,
    "must be a code as in the mail",
    9,
    "The code of the newest confirmation mail.",
  ),
});
