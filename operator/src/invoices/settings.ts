/** The terms of invoices: `billing.invoices` of the chart, as JSON in the environment. */

import type { InvoiceTerms, OverdueTerms } from "@slipway/ledger";
import { jsonText } from "@slipway/process";
import { z } from "zod";

const taxes = z
  .array(
    z.strictObject({
      name: z.string().min(1).max(64),
      rate: z
        .string()
        .regex(/^(0|[1-9][0-9]{0,2})(\.[0-9]{1,6})?$/, "must be percent as a decimal in text such as 2.9"),
    }),
  )
  .max(10);

const terms = z.strictObject({
  issuer: z.string().max(1_000).default(""),
  dueDays: z.int().min(1).max(365).default(14),
  taxes: z
    .strictObject({
      default: taxes.default([]),
      countries: z
        .record(z.string().regex(/^[A-Z]{2}$/, "must be two capital letters (ISO 3166-1)"), taxes)
        .default({}),
    })
    .default({ default: [], countries: {} }),
}) satisfies z.ZodType<InvoiceTerms>;

export const invoiceTerms = jsonText.pipe(terms);

/** When overdue invoices block: `billing.invoices.overdue` of the chart, likewise. */
export const overdueTerms = jsonText.pipe(
  z.strictObject({
    blockDays: z.int().min(1).max(365),
    noticeDays: z.array(z.int().min(1).max(90)).max(10).default([]),
  }) satisfies z.ZodType<OverdueTerms>,
);
