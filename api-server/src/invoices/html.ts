import { createHash } from "node:crypto";
import type { CreditNote, Invoice, InvoiceLine } from "@slipway/ledger";
import { openCents } from "@slipway/ledger";
import { units, type WholeInvoice } from "./view.ts";

/** An invoice as a page that prints well: no scripts, nothing from elsewhere, every text escaped. */

const STYLE = `
body { font: 14px/1.4 system-ui, sans-serif; color: #111; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
header { display: flex; justify-content: space-between; gap: 2rem; }
pre { font: inherit; white-space: pre-wrap; margin: 0; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid #ccc; overflow-wrap: anywhere; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
thead { display: table-header-group; }
tr { break-inside: avoid; }
.sum { width: auto; margin-left: auto; }
@page { size: A4; margin: 15mm; }
@media print { body { margin: 0; max-width: none; font-size: 11px; } }
`;

/** The page's style, as a policy names it. */
export const STYLE_SOURCE = `'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`;

/** The page's own style, and nothing else. It is in the page, too, so that one that was stored has it. */
const CONTENT_POLICY = [
  "default-src 'none'",
  `style-src ${STYLE_SOURCE}`,
  "base-uri 'none'",
  "form-action 'none'",
];
/** What a page itself cannot have. */
const POLICY = [...CONTENT_POLICY, "frame-ancestors 'none'", "sandbox"].join("; ");

export const HTML_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": POLICY,
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? sign);

/** Whole cents in units of the currency: `BRL 12.34`. */
export function money(cents: bigint, currency: string): string {
  const [sign, amount] = cents < 0n ? ["-", -cents] : ["", cents];
  return `${currency.toUpperCase()} ${sign}${amount / 100n}.${String(amount % 100n).padStart(2, "0")}`;
}

const day = (at: Date): string => at.toISOString().slice(0, 10);

export interface LinesShown {
  /** Number of the first line after these; undefined when these are the last ones. */
  next?: number | undefined;
}

export function invoiceHtml({ invoice, lines, notes }: WholeInvoice, { next }: LinesShown = {}): string {
  const title = escapeHtml(`Invoice ${invoice.number}`);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta http-equiv="content-security-policy" content="${CONTENT_POLICY.join("; ")}"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><style>${STYLE}</style></head>
<body>
<header><div><h1>${title}</h1><pre>${escapeHtml(invoice.issuer)}</pre></div>${facts(invoice)}</header>
<table>
<thead><tr><th>#</th><th>Project</th><th>What</th><th>Plan</th><th class="n">Quantity</th><th>Unit</th><th class="n">Cents a unit</th><th class="n">Cents</th></tr></thead>
<tbody>
${lines.map(lineRow).join("\n")}
</tbody>
</table>
${next === undefined ? "" : `<p>Lines from ${next} on are on the next page.</p>`}
${sums(invoice)}
${notes.map((note) => noteText(note, invoice)).join("\n")}
</body>
</html>
`;
}

function facts(invoice: Invoice): string {
  const { organizationName, organizationId, country } = invoice;
  const rows: [string, string][] = [
    ["To", organizationName === "" ? organizationId : `${organizationName} (${organizationId})`],
    ...(country === undefined ? [] : [["Country", country] satisfies [string, string]]),
    ["Month", day(invoice.cycleStart).slice(0, 7)],
    ["Issued", day(invoice.issuedAt)],
    ["Due", day(invoice.dueAt)],
    ["State", invoice.state],
  ];
  return `<table class="sum">${rows.map(([name, value]) => `<tr><th>${name}</th><td>${escapeHtml(value)}</td></tr>`).join("")}</table>`;
}

function lineRow(line: InvoiceLine): string {
  const cell = (text: string | number | undefined, style = "") =>
    `<td${style}>${escapeHtml(String(text ?? ""))}</td>`;
  const number = ' class="n"';
  return `<tr>${[
    cell(line.line),
    cell(line.projectId),
    cell(`${line.kind.replace("_", " ")}${line.adjusts ? ", adjustment" : ""}`),
    cell(line.plan),
    cell(line.quantity, number),
    cell(units[line.kind]?.replace("_", " ")),
    cell(line.unitPrice, number),
    cell(line.amount, number),
  ].join("")}</tr>`;
}

function sums(invoice: Invoice): string {
  const { currency } = invoice;
  const rows: [string, string][] = [
    ["Lines, in cents", invoice.subtotal],
    ["From the invoice before, in cents", invoice.carryIn],
    ["For the next invoice, in cents", invoice.carryOut],
    ["Net", money(invoice.netCents, currency)],
    ...invoice.taxes.map(({ name, rate, cents }): [string, string] => [
      `${name} ${rate} %`,
      money(cents, currency),
    ]),
    ["Total", money(invoice.totalCents, currency)],
    ["Paid", money(invoice.paidCents, currency)],
    ["Credited", money(invoice.creditedCents, currency)],
    ["To be paid", money(openCents(invoice), currency)],
  ];
  return `<table class="sum">${rows
    .map(([name, value]) => `<tr><th>${escapeHtml(name)}</th><td class="n">${escapeHtml(value)}</td></tr>`)
    .join("")}</table>`;
}

const noteText = (note: CreditNote, { currency }: Invoice): string =>
  `<p>Credit note ${escapeHtml(note.number)} of ${day(note.issuedAt)}: ${escapeHtml(money(note.totalCents, currency))}, ${escapeHtml(note.reason)}</p>`;
