/** The body of the routes of an organization's budget. */

import { z } from "zod";
import { integer, matching } from "../fields.ts";

/** Percent of a budget that are notified of unless others are named. */
export const DEFAULT_NOTICES: readonly number[] = [50, 80, 100];
/** Notices of one budget. */
export const NOTICES_MAX = 10;
/** More than 0 and up to a billion BRL, with the decimals that charges have. */
const AMOUNT = /^(?=.*[1-9])(?:0|[1-9][0-9]{0,10})(?:\.[0-9]{1,9})?$/;

export const putBudgetBody = z.strictObject({
  amount: matching(
    AMOUNT,
    "must be a decimal of more than 0 with up to 11 digits and 9 decimals, such as 15000 or 99.5",
    21,
    "What a billing cycle may cost, in BRL cents.",
  ),
  notices: z
    .array(integer(1, 1_000, "Percent of the amount."))
    .max(NOTICES_MAX)
    .refine((notices) => new Set(notices).size === notices.length, {
      message: "must not name anything twice",
    })
    .default([...DEFAULT_NOTICES])
    .meta({
      description: `Percent of the amount at which the event \`budget.reached\` is sent, once in a cycle each. Absent: ${DEFAULT_NOTICES.join(", ")}.`,
      uniqueItems: true,
    }),
  hard_cap: z
    .boolean()
    .default(false)
    .describe(
      "Whether projects are paused once the whole amount is charged, until there is more, or a new cycle.",
    ),
});
