import { type Child, h } from "../lib/dom.ts";
import { brl, count } from "../lib/format.ts";
import { lineKind, lineQuantity } from "../lib/invoice.ts";
import { badge, type Column, facts, fullMoment, pages, table, text } from "../lib/parts.ts";
import { link, type Route, withQuery } from "../lib/route.ts";
import type { CreditNote, Invoice, InvoiceLine, InvoicePayment } from "../lib/shapes.ts";
import { type Context, refreshed } from "../lib/view.ts";
import { invoiceDocuments } from "./invoice-documents.ts";

const POLL_INTERVAL_MS = 60_000;
const PER_PAGE = 50;

/** One invoice: what is to be paid, its lines, and what was paid and credited. */
export function invoice(
  context: Context,
  number: string,
  route: Extract<Route, { view: "costs" }>,
): HTMLElement {
  const { api, signal } = context;
  const page = Math.max(1, Number.parseInt(route.query.get("page") ?? "", 10) || 1);
  const path = `/v1/organization/invoices/${encodeURIComponent(number)}`;
  const place = h("div", { class: "stack" });
  let documents: HTMLElement | undefined;
  refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () =>
        (await api.getExact<Invoice>(path, { format: "json", page, limit: PER_PAGE }, signal)).data,
      show: (found) => {
        // Its lines never change, and a refresh leaves what is shown to print.
        if (documents === undefined) {
          documents = invoiceDocuments(context, {
            path,
            id: found.id,
            lines: Number(found.pagination.total),
          });
          place.before(documents);
        }
        return [summary(found), ...changes(found), lines(found, page, route)];
      },
    },
    { signal },
  );
  return h(
    "div",
    { class: "stack" },
    h("p", { class: "quiet" }, h("a", { href: link(["costs"]) }, "Costs")),
    h("h1", { tabindex: -1 }, `Invoice ${text(number)}`),
    place,
  );
}

/** Each figure of the sum, with the carry that whole cents make. */
function summary(one: Invoice): HTMLElement {
  const { organization } = one;
  const taxes = one.taxes.map(({ name, rate, amount }): [string, Child] => [
    `${text(name)} ${rate} %`,
    brl(amount),
  ]);
  return h(
    "section",
    { class: "card" },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, `Cycle ${one.cycle_started_at.slice(0, 7)}`),
      badge(one.status),
    ),
    facts([
      ["Lines", brl(one.subtotal)],
      ["From the invoice before", one.carried_in === "0" ? undefined : brl(one.carried_in)],
      ["For the next invoice", one.carried_out === "0" ? undefined : brl(one.carried_out)],
      ["Net", brl(one.net_amount)],
      ...taxes,
      ["Total", h("strong", {}, brl(one.total_amount))],
      ["Paid", brl(one.paid_amount)],
      ["Credited", brl(one.credited_amount)],
      ["Still to pay", h("strong", {}, brl(one.open_amount))],
      ["Issued", fullMoment(one.issued_at)],
      ["Due", fullMoment(one.due_at)],
      ["Blocks the organization", one.blocks_at && fullMoment(one.blocks_at)],
      ["To", text(organization.name || organization.id)],
      ["Country", organization.country && text(organization.country)],
      ["From", h("span", { class: "lines" }, one.issuer.split("\n").map(text).join("\n"))],
    ]),
  );
}

function changes({ payments, credit_notes: notes }: Invoice): HTMLElement[] {
  return [
    ...(payments.length === 0 ? [] : [section("Payments", table("Payments", paymentColumns, payments))]),
    ...(notes.length === 0 ? [] : [section("Credit notes", table("Credit notes", noteColumns, notes))]),
  ];
}

function lines({ lines: found, pagination }: Invoice, page: number, route: Route): HTMLElement {
  const total = Number(pagination.total);
  return section(
    "Lines",
    table("Lines", lineColumns, found),
    h(
      "div",
      { class: "foot" },
      h("span", { class: "quiet" }, total === 1 ? "1 line" : `${count(total)} lines`),
      pages(page, Number(pagination.pages), (to) => withQuery(route, { page: String(to) })),
    ),
  );
}

const section = (title: string, ...content: HTMLElement[]): HTMLElement =>
  h("section", { class: "card flush" }, h("h2", {}, title), ...content);

const lineColumns: Column<InvoiceLine>[] = [
  { name: "Line", cell: ({ line }) => line },
  { name: "Project", cell: ({ project_id: id }) => h("code", {}, text(id)) },
  {
    name: "For",
    cell: (one) => [lineKind(one), one.plan === undefined ? undefined : h("small", {}, " ", text(one.plan))],
  },
  { name: "Quantity", cell: lineQuantity, isNumber: true },
  { name: "Each", cell: ({ unit_amount: each }) => brl(each), isNumber: true },
  { name: "Charges", cell: ({ charges }) => count(Number(charges)), isNumber: true },
  { name: "Amount", cell: ({ amount }) => brl(amount), isNumber: true },
];

const paymentColumns: Column<InvoicePayment>[] = [
  { name: "When", cell: ({ paid_at: at }) => fullMoment(at) },
  { name: "What", cell: ({ kind }) => kind },
  { name: "Reference", cell: ({ reference }) => h("code", { class: "long" }, text(reference)) },
  {
    name: "Amount",
    cell: ({ kind, amount }) => brl(kind === "reversal" ? `-${amount}` : amount),
    isNumber: true,
  },
];

const noteColumns: Column<CreditNote>[] = [
  { name: "Number", cell: ({ id }) => text(id) },
  { name: "Issued", cell: ({ issued_at: at }) => fullMoment(at) },
  { name: "Reason", cell: ({ reason }) => text(reason) },
  { name: "Net", cell: ({ net_amount: net }) => brl(net), isNumber: true },
  { name: "Taxes", cell: ({ tax_amount: tax }) => brl(tax), isNumber: true },
  { name: "Total", cell: ({ total_amount: total }) => brl(total), isNumber: true },
];
