import {
  findInvoice,
  type Invoice,
  listCreditNotes,
  listInvoiceCharges,
  listInvoiceLines,
  listInvoicePayments,
  listInvoices,
} from "@slipway/ledger";
import { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import type { Answer } from "../http/exchange.ts";
import { type Call, defineRoute } from "../http/route.ts";
import { wholeNumber } from "../http/validate.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import { pagination, success } from "../projects/routes/schemas.ts";
import type { Services } from "../services.ts";
import { invoiceCsv } from "./csv.ts";
import { formatOf, invoiceFormats } from "./format.ts";
import { HTML_HEADERS, invoiceHtml } from "./html.ts";
import {
  chargeSchema,
  chargeView,
  INVOICE_ID,
  invoiceItem,
  invoiceItemSchema,
  invoiceSchema,
  invoiceView,
  type WholeInvoice,
} from "./view.ts";

const TAGS = ["Invoices"];
const NO_STORE = { "cache-control": "no-store" };
/** An answer may have megabytes. */
const MAX_CONCURRENT = 8;
/** Most lines of one answer. */
const MAX_LINES = 10_000;

const organizationOf = ({ principal }: Pick<Call<unknown, unknown, unknown>, "principal">): string =>
  (principal as Principal).organizationId;

/** @throws Failure 404, also for an invoice of another organization */
async function invoiceOf(
  call: Pick<Call<unknown, unknown, unknown>, "principal" | "request">,
  { ledger }: Pick<Services, "ledger">,
): Promise<Invoice> {
  const { invoiceId } = call.request.params as { invoiceId: string };
  const found = INVOICE_ID.test(invoiceId)
    ? await withLedgerErrors(() => findInvoice(ledger, invoiceId, organizationOf(call)))
    : undefined;
  if (found === undefined) {
    throw failures.invoiceNotFound(invoiceId);
  }
  return found;
}

const pagesOf = ({ page, limit }: { page: number; limit: number }, total: number) => ({
  page,
  limit,
  total,
  pages: Math.ceil(total / limit),
});

export const listInvoicesRoute = defineRoute({
  operationId: "listInvoices",
  method: "GET",
  path: "/v1/organization/invoices",
  summary: "List invoices",
  description: "The newest first, without their lines.",
  tags: TAGS,
  query: z.strictObject({
    page: wholeNumber(1, 10_000).default(1),
    limit: wholeNumber(1, 50).default(20),
  }),
  responses: {
    200: {
      description: "One page of invoices.",
      schema: success({ data: z.object({ invoices: z.array(invoiceItemSchema), pagination }) }),
    },
  },
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { ledger }) => {
    const { page, limit } = call.query;
    const which = { organizationId: organizationOf(call), limit, offset: (page - 1) * limit };
    const { invoices, total } = await withLedgerErrors(() => listInvoices(ledger, which));
    const data = { invoices: invoices.map(invoiceItem), pagination: pagesOf(call.query, total) };
    return { status: 200, headers: NO_STORE, body: { status: "success", data } };
  },
});

export const readInvoice = defineRoute({
  operationId: "readInvoice",
  method: "GET",
  path: "/v1/organization/invoices/:invoiceId",
  summary: "Read an invoice with its lines",
  description:
    "As JSON, as CSV of its lines, or as a page to print: `format`, or else the first type of `Accept` that there is. `pagination` is of its lines, of " +
    "which one answer has at most 10,000.",
  tags: TAGS,
  query: z.strictObject({
    format: z.enum(invoiceFormats).optional(),
    page: wholeNumber(1, 10_000).default(1),
    limit: wholeNumber(1, MAX_LINES).default(MAX_LINES),
  }),
  responses: {
    200: {
      description: "The invoice.",
      schema: success({ data: invoiceSchema.extend({ pagination }) }),
      texts: ["text/csv", "text/html"],
      link: 'Of CSV and HTML whose lines go on: the next page, with `rel="next"`.',
    },
  },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const invoice = await invoiceOf(call, services);
    const { page, limit, format } = call.query;
    const after = (page - 1) * limit;
    const { ledger } = services;
    const whole = await withLedgerErrors(async () => ({
      invoice,
      lines: await listInvoiceLines(ledger, invoice, { after, limit }),
      notes: await listCreditNotes(ledger, invoice.number),
      payments: await listInvoicePayments(ledger, invoice.number),
    }));
    return answers[formatOf(format, call.request.headers.accept)](whole, { page, limit });
  },
});

/** Where lines go on, as RFC 8288 has it: JSON says so in its `pagination`. */
function linkToNext(
  format: string,
  { invoice }: WholeInvoice,
  { page, limit }: { page: number; limit: number },
): { link?: string } {
  const next = `/v1/organization/invoices/${invoice.number}?format=${format}&page=${page + 1}&limit=${limit}`;
  return page * limit < invoice.lineCount ? { link: `<${next}>; rel="next"` } : {};
}

type Answers = Record<
  (typeof invoiceFormats)[number],
  (whole: WholeInvoice, paging: { page: number; limit: number }) => Answer
>;

const answers: Answers = {
  json: (whole, paging) => {
    const data = { ...invoiceView(whole), pagination: pagesOf(paging, whole.invoice.lineCount) };
    return { status: 200, headers: { ...NO_STORE, vary: "accept" }, body: { status: "success", data } };
  },
  csv: (whole, paging) => ({
    status: 200,
    headers: {
      ...NO_STORE,
      ...linkToNext("csv", whole, paging),
      vary: "accept",
      "content-type": "text/csv; charset=utf-8; header=present",
      "content-disposition": `attachment; filename="invoice-${whole.invoice.number}.csv"`,
      "x-content-type-options": "nosniff",
    },
    content: invoiceCsv(whole),
  }),
  html: (whole, paging) => {
    const { page, limit } = paging;
    const last = page * limit;
    const next = last < whole.invoice.lineCount ? last + 1 : undefined;
    return {
      status: 200,
      headers: { ...NO_STORE, vary: "accept", ...HTML_HEADERS, ...linkToNext("html", whole, paging) },
      content: invoiceHtml(whole, { next }),
    };
  },
};

export const listInvoiceChargesRoute = defineRoute({
  operationId: "listInvoiceCharges",
  method: "GET",
  path: "/v1/organization/invoices/:invoiceId/charges",
  summary: "List the charges that an invoice's lines sum up",
  description: "In the order of the lines, and of a line in that of time. Each is on this invoice alone.",
  tags: TAGS,
  query: z.strictObject({
    line: wholeNumber(1, 2 ** 31 - 1).optional(),
    page: wholeNumber(1, 10_000).default(1),
    limit: wholeNumber(1, 1_000).default(100),
  }),
  responses: {
    200: {
      description: "One page of charges.",
      schema: success({ data: z.object({ charges: z.array(chargeSchema), pagination }) }),
    },
  },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const invoice = await invoiceOf(call, services);
    const { line, page, limit } = call.query;
    const which = { line, limit, offset: (page - 1) * limit };
    const { charges, total } = await withLedgerErrors(() =>
      listInvoiceCharges(services.ledger, invoice, which),
    );
    const data = { charges: charges.map(chargeView), pagination: pagesOf(call.query, total) };
    return { status: 200, headers: NO_STORE, body: { status: "success", data } };
  },
});
