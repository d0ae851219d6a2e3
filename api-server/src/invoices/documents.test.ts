import { expect, test } from "vitest";
import { csvCell, invoiceCsv } from "./csv.ts";
import { formatOf } from "./format.ts";
import { escapeHtml, HTML_HEADERS, invoiceHtml, money } from "./html.ts";
import type { WholeInvoice } from "./view.ts";

const HOSTILE = `<script>alert("1")</script>&'`;

const whole: WholeInvoice = {
  invoice: {
    number: "2026-000042",
    organizationId: "acme",
    organizationName: HOSTILE,
    issuer: `Example\n${HOSTILE}`,
    country: "BR",
    currency: "brl",
    cycleStart: new Date("2026-10-01T00:00:00Z"),
    issuedAt: new Date("2026-11-02T00:12:00Z"),
    dueAt: new Date("2026-11-16T00:12:00Z"),
    blocksAt: undefined,
    lineCount: 2,
    chargeCount: 3,
    carryIn: "0",
    subtotal: "2160.35",
    carryOut: "0.35",
    netCents: 2_160n,
    taxes: [{ name: HOSTILE, rate: "2.9", cents: 63n }],
    taxCents: 63n,
    totalCents: 2_223n,
    paidCents: 0n,
    creditedCents: 0n,
    state: "open",
  },
  lines: [
    {
      line: 1,
      projectId: "=HYPERLINK(1)",
      kind: "job_run",
      plan: HOSTILE,
      quantity: "2",
      unitPrice: "0.175",
      amount: "0.35",
      chargeCount: 2,
      adjusts: false,
    },
    {
      line: 2,
      projectId: "shop",
      kind: "credit",
      plan: undefined,
      quantity: "1",
      unitPrice: "-2.5",
      amount: "-2.5",
      chargeCount: 1,
      adjusts: true,
    },
  ],
  notes: [
    {
      number: "CN-2026-000001",
      invoiceNumber: "2026-000042",
      reference: "r",
      reason: HOSTILE,
      issuedAt: new Date("2026-11-03T00:00:00Z"),
      netCents: 10n,
      taxes: [],
      taxCents: 0n,
      totalCents: 10n,
    },
  ],
  payments: [],
};

// Shows: docs/invoices.md#over-v1: every text is escaped
test("the page has every text escaped, no script, and a policy that allows nothing but its style", () => {
  const html = invoiceHtml(whole, { next: 3 });
  expect(html).not.toMatch(/<script|alert\("/);
  expect(html.split(escapeHtml(HOSTILE)).length - 1).toBe(5);
  expect(html).toContain("BRL 22.23");
  expect(html).toContain("<td>credit, adjustment</td>");
  expect(html).toContain("Lines from 3 on");
  const policy = HTML_HEADERS["content-security-policy"];
  expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; /);
  expect(policy).not.toMatch(/unsafe|script/);
  // A page that was stored has a policy still.
  const [, own = ""] = /<meta http-equiv="content-security-policy" content="([^"]*)">/.exec(html) ?? [];
  expect(own).toMatch(/^default-src 'none'; style-src 'sha256-/);
  expect(policy.startsWith(`${own}; `)).toBe(true);
  // What the hash does not cover would not be applied.
  expect(html).not.toMatch(/ style=| on[a-z]+=|<link|<img/);
});

// Shows: docs/invoices.md#over-v1: no cell is a formula
test.each([
  ["=1+1", "'=1+1"],
  ["+1+1", "'+1+1"],
  ["-1+1", "'-1+1"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["\tx", "'\tx"],
  ["\r=1", `"'\r=1"`],
  ["＝1", "'＝1"],
  ["-2.5", "-2.5"],
  ["12", "12"],
  ['a"b', '"a""b"'],
  ["a,b", '"a,b"'],
  ['=a"b,c', `"'=a""b,c"`],
  ["shop", "shop"],
])("the cell of %j is %j", (text, cell) => {
  expect(csvCell(text)).toBe(cell);
});

test("the CSV has a row for each line", () => {
  const rows = invoiceCsv(whole).split("\r\n");
  expect(rows[1]).toMatch(/^2026-000042,1,'=HYPERLINK\(1\),job_run,"<script>/);
  expect(rows[2]).toBe("2026-000042,2,shop,credit,,credit,1,-2.5,-2.5,brl,1,adjustment");
  expect(rows).toHaveLength(4);
});

test.each([
  [undefined, undefined, "json"],
  [undefined, "*/*", "json"],
  [undefined, "text/csv", "csv"],
  [undefined, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "html"],
  [undefined, "application/pdf, Text/CSV;q=0.5, text/html", "csv"],
  [undefined, "text/html;q=0, application/json", "json"],
  [undefined, "text/html; Q=0.000;x=1, text/csv;q=0.1", "csv"],
  ["csv", "text/html", "csv"],
  ["json", "text/html", "json"],
] as const)("format=%s with Accept: %s is %s", (named, accept, format) => {
  expect(formatOf(named, accept)).toBe(format);
});

test("cents are shown in units of the currency", () => {
  expect([money(0n, "brl"), money(5n, "brl"), money(-1_205n, "brl")]).toEqual([
    "BRL 0.00",
    "BRL 0.05",
    "BRL -12.05",
  ]);
});
