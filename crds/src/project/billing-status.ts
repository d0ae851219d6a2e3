import { z } from "zod";
import { planId, timestamp } from "../fields.ts";

/** Changes that a status lists: while the ledger is away, later ones wait until it has recorded some. */
export const BILLABLE_CHANGES_LISTED = 200;

const planPaymentMode = z.enum(["hourly", "monthly", "yearly"]);

const billableChange = z
  .strictObject({
    number: z
      .int()
      .min(1)
      .meta({ description: "Place in the project's history, from 1 up.", format: "int32" }),
    at: timestamp("From when on it holds; never earlier than that of the change before."),
    deleted: z.boolean().describe("The project was deleted: there is nothing else in the entry.").optional(),
    plan: planId.optional(),
    paymentMode: planPaymentMode.describe("How the plan is paid.").optional(),
    renews: z.boolean().describe("Whether a term that ends is followed by another one.").optional(),
    instances: z
      .int()
      .min(0)
      .meta({ description: "Instances under the plan, unless it is paused.", format: "int32" })
      .optional(),
    paused: z.boolean().describe("Whether the project is paused.").optional(),
    billedGb: z.int().min(0).meta({ description: "GB that are billed.", format: "int32" }).optional(),
  })
  .describe("What the project has from an instant on.");
export type BillableStatusChange = z.output<typeof billableChange>;

export const billingStatus = z
  .strictObject({
    changes: z
      .array(billableChange)
      .max(BILLABLE_CHANGES_LISTED)
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe(
        "The last change of what is billed, and those before it that the ledger did not have when it was listed.",
      ),
  })
  .describe("What of the project is billed, where plans are metered.");
