import {
  beginInvoicing,
  connectLedger,
  countRefusedPaymentEvents,
  insertOrganization,
  issueInvoice,
  type Ledger,
  migrateToLatest,
  recordJobRuns,
  recordPaymentEvent,
  settleCycle,
} from "@slipway/ledger";
import { afterAll, beforeAll, expect, test } from "vitest";
import { jobRun } from "../../../test/kit/ledger/charged-rows.ts";
import { forge } from "../../../test/kit/ledger/forge.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { openAdminContext } from "./context.ts";
import { runAdminCommand } from "./program.ts";

/** The admin commands of invoices. */

const JANUARY = new Date("2026-01-01T00:00:00Z");
let postgres: TestPostgres;
let ledger: Ledger;
let number = "";

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  await insertOrganization(ledger, { id: "acme", name: "Acme" });
  await beginInvoicing(ledger, JANUARY);
  await recordJobRuns(ledger, [
    jobRun({ organization_id: "acme", scheduled_at: JANUARY, price_per_minute: "1000" }),
  ]);
  await settleCycle(ledger, JANUARY);
  expect(await json("organization", "country", "--organization", "acme", "--country", "BR")).toEqual({
    organization_id: "acme",
    country: "BR",
  });
  const taxes = { default: [], countries: { BR: [{ name: "ISS", rate: "2.9" }] } };
  const terms = { issuer: "", dueDays: 14, taxes };
  number = (await issueInvoice(ledger, { organizationId: "acme", cycle: "2026-01-01" }, terms)) ?? "";
});
afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
});

async function admin(...words: string[]) {
  const { close, ...context } = openAdminContext({ SLIPWAY_LEDGER_URL: postgres.url });
  try {
    return await runAdminCommand(["admin", ...words], context);
  } finally {
    await close();
  }
}

async function json(...words: string[]): Promise<Record<string, unknown>> {
  const { exitCode, stdout, stderr } = await admin(...words, "--json");
  expect([exitCode, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

// Shows: docs/invoices.md#payments-and-credit-notes: `admin invoice list`, `admin invoice show --invoice NUMBER`
// Shows: docs/invoices.md#payments-and-credit-notes: `admin organization country --organization ID --country BR`
test("invoices are listed and shown", async () => {
  expect(await json("invoice", "list")).toMatchObject({
    invoices: [{ id: number, organization_id: "acme", status: "open", total_amount: 1_029 }],
    pagination: { total: 1 },
  });
  expect(await json("invoice", "list", "--organization", "other")).toMatchObject({ invoices: [] });
  expect(await json("invoice", "show", "--invoice", number)).toMatchObject({
    organization: { id: "acme", country: "BR" },
    taxes: [{ name: "ISS", rate: "2.9", amount: 29 }],
    lines: [{ project_id: "nightly", amount: 1_000 }],
    pagination: { page: 1, limit: 10_000, total: 1, pages: 1 },
  });
  expect(await json("invoice", "show", "--invoice", number, "--page", "2")).toMatchObject({ lines: [] });
  const { stdout } = await admin("invoice", "show", "--invoice", number);
  expect(stdout).toContain("total_amount: 1029\n");
});

// Shows: docs/invoices.md#payments-and-credit-notes: `admin invoice events`
test("reported payments are listed by page, of an invoice or those that were refused", async () => {
  const occurredAt = new Date("2026-02-01T00:00:00Z");
  const common = { provider: "generic", eventType: "payment.received", kind: "payment", occurredAt } as const;
  for (let index = 0; index < 102; index += 1) {
    await recordPaymentEvent(ledger, {
      ...{ ...common, eventId: `e${index}`, reference: `r${index}`, currency: "brl", amount: "7" },
      invoice: index === 0 ? number : "2099-000001",
    });
  }
  expect(await json("invoice", "events", "--invoice", number)).toMatchObject({
    events: [
      {
        ...{ provider: "generic", event_id: "e0", event_type: "payment.received", invoice_id: number },
        ...{ reference: "r0", currency: "brl", amount: "7", outcome: "wrong_amount" },
      },
    ],
    ...{ page: 1, has_more: false },
  });
  const { events, has_more: hasMore } = await json("invoice", "events", "--refused");
  expect([(events as unknown[]).length, hasMore]).toEqual([100, true]);
  const last = await json("invoice", "events", "--refused", "--page", "2");
  expect(last).toMatchObject({ events: [{}, {}], has_more: false });
  expect(await countRefusedPaymentEvents(ledger)).toBe(102);
});

// Shows: docs/invoices.md#payments-and-credit-notes: a payment of what is open, or `--amount CENTS`
// Shows: docs/invoices.md#payments-and-credit-notes: that this payment was given back
// Shows: docs/invoices.md#payments-and-credit-notes: `admin invoice credit --invoice NUMBER
test("payments and credit notes are recorded once by their reference", async () => {
  const pay = (...words: string[]) => json("invoice", "pay", "--invoice", number, "--reference", ...words);
  const first = ["bank-1", "--amount", "100", "--paid-at", "2026-02-03T00:00:00Z"];
  expect(await pay(...first)).toMatchObject({ recorded: true, open_amount: 929, organization_id: "acme" });
  expect(await pay(...first)).toMatchObject({ recorded: false, open_amount: 929 });
  const credit = [
    ...["invoice", "credit", "--invoice", number, "--reference", "ticket-1"],
    ...["--reason", "An outage", "--amount", "500"],
  ];
  const note = await json(...credit);
  expect(note).toMatchObject({ recorded: true, credited_amount: 515, open_amount: 414 });
  expect(note.credit_note_id).toMatch(/^CN-\d{4}-000001$/);
  expect(await json(...credit)).toMatchObject({ recorded: false, credit_note_id: note.credit_note_id });
  expect(await pay("bank-2")).toMatchObject({ recorded: true, open_amount: 0, status: "paid" });
  expect(await pay("bank-2", "--reverse")).toMatchObject({
    recorded: true,
    open_amount: 414,
    status: "open",
  });
  const rows = await ledger.selectFrom("audit_log").selectAll().orderBy("id", "desc").limit(1).execute();
  expect(rows).toMatchObject([
    { operation: "admin invoice pay", actor: "admin", organization_id: "acme", status: 200 },
  ]);
});

test.each([
  [["pay", "--invoice", "2026-999999", "--reference", "x"], /there is no invoice 2026-999999/],
  [["pay", "--invoice", "INVOICE", "--reference", "a b"], /1 to 128 visible characters/],
  [["pay", "--invoice", "INVOICE", "--reference", "x", "--amount", "1.5"], /whole cents/],
  [["pay", "--invoice", "INVOICE", "--reference", "x", "--amount", "99999"], /no more than is open/],
  [["pay", "--invoice", "INVOICE", "--reference", "bank-1", "--amount", "7"], /with another amount/],
  [["pay", "--invoice", "INVOICE", "--reference", "bank-2"], /was reversed/],
  [["pay", "--invoice", "INVOICE", "--reference", "x", "--paid-at", "2999-01-01T00:00:00Z"], /future/],
  [["pay", "--invoice", "INVOICE", "--reference", "x", "--paid-at", "0206-01-01T00:00:00Z"], /before 2020/],
  [["pay", "--invoice", "INVOICE", "--reference", "x", "--paid-at", "yesterday"], /must be in UTC/],
  [["pay", "--invoice", "INVOICE", "--reference", "none", "--reverse"], /has no payment none/],
  [["credit", "--invoice", "INVOICE", "--reference", "x", "--reason", ""], /a reason has/],
  [
    ["credit", "--invoice", "INVOICE", "--reference", "x", "--reason", "y", "--amount", "501"],
    /no more than/,
  ],
  [["show", "--invoice", "'"], /there is no invoice/],
  [["list", "--page", "0"], /the page must be/],
])("invoice %j fails with one clear line", async (words, message) => {
  const named = words.map((word) => (word === "INVOICE" ? number : word));
  const { exitCode, stdout, stderr } = await admin("invoice", ...named, "--json");
  expect([exitCode, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(message);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

// Shows: docs/billing-audit.md#the-command: The command ends with 1 where anything is found, and with 0 where nothing is
test("billing is audited", async () => {
  const clean = await json("billing", "audit");
  expect(clean).toMatchObject({ clean: true, organizations: 1, invoices: 1, findings: [], head: null });
  await ledger
    .transaction()
    .execute((transaction) => forge(transaction, "update invoice_charges set amount = amount + 1"));
  const result = await admin("billing", "audit", "--organization", "acme", "--from", "2026-01-31", "--json");
  expect([result.exitCode, result.stderr]).toEqual([1, ""]);
  expect(JSON.parse(result.stdout)).toMatchObject({
    clean: false,
    counts: { INVOICE_CHARGE_DIFFERS: 1, INVOICE_LINE_DIFFERS: 1 },
    findings: [
      { code: "INVOICE_CHARGE_DIFFERS", organization_id: "acme", expected: "1000", found: "1001" },
      { code: "INVOICE_LINE_DIFFERS", organization_id: "acme", key: "2026-01-01/1" },
    ],
    more_findings: 0,
  });
  expect(await json("billing", "audit", "--from", "2026-02-01")).toMatchObject({ clean: true });
});

test.each([
  [["--from", "2026-02-30"], /a date has the form/],
  [["--from", "2026-02-01", "--to", "2026-01-01"], /must not be after/],
  [["--head", "abc"], /64 hexadecimal digits/],
  [["--organization", "none"], /no organization none/],
])("an audit with %j is refused", async (words, message) => {
  const { exitCode, stderr } = await admin("billing", "audit", ...words);
  expect(stderr).toMatch(message);
  expect(exitCode).toBe(1);
});
