import {
  beginInvoicing,
  connectLedger,
  findInvoice,
  insertOrganization,
  issueCreditNote,
  issueInvoice,
  type Ledger,
  migrateToLatest,
  payInvoice,
  recordJobRuns,
  settleCycle,
} from "@slipway/ledger";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { jobRun } from "../../../test/kit/ledger/charged-rows.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";

/** Invoices over `/v1`, in a real PostgreSQL. */

const INVOICES = "/v1/organization/invoices";
const NAME = `<b onclick="x()">Acme & Co</b>`;
const JANUARY = new Date("2026-01-01T00:00:00Z");

let postgres: TestPostgres;
let ledger: Ledger;
let harness: FakeHarness;
let number = "";
let reader: Record<string, string>;

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  harness = await startFakeHarness({ ledger });
  reader = harness.key("acme", "organization.invoices.read on organization:*");
  await insertOrganization(ledger, { id: "acme", name: NAME });
  await beginInvoicing(ledger, JANUARY);
  const at = (hour: number) => new Date(JANUARY.getTime() + hour * 3_600_000);
  await recordJobRuns(ledger, [
    ...[1, 2, 3].map((hour) =>
      jobRun({ organization_id: "acme", scheduled_at: at(hour), price_per_minute: "100.25" }),
    ),
    jobRun({ organization_id: "acme", project_id: "weekly", scheduled_at: at(4), price_per_minute: "7" }),
  ]);
  await settleCycle(ledger, JANUARY);
  const terms = {
    issuer: "Example Hosting",
    dueDays: 14,
    taxes: { default: [{ name: "ISS", rate: "2.9" }], countries: {} },
  };
  number = (await issueInvoice(ledger, { organizationId: "acme", cycle: "2026-01-01" }, terms)) ?? "";
});
afterAll(async () => {
  await harness?.close();
  await ledger?.destroy();
  await postgres?.stop();
});

const get = (url: string, headers = reader) => harness.app.inject({ url, headers });

describe("invoices", () => {
  // Shows: docs/invoices.md#over-v1: `GET /v1/organization/invoices` |
  // Shows: docs/invoices.md#over-v1: `GET /v1/organization/invoices/:invoiceId` |
  test("are listed, and read with lines, amounts and taxes that are exact", async () => {
    const list = await get(INVOICES);
    expect(list.json().data).toMatchObject({
      invoices: [
        { id: number, status: "open", net_amount: 307, tax_amount: 9, total_amount: 316, open_amount: 316 },
      ],
      pagination: { page: 1, limit: 20, total: 1, pages: 1 },
    });
    const read = await get(`${INVOICES}/${number}`);
    expect(read.body).toContain('"subtotal":307.75,');
    expect(read.json().data).toMatchObject({
      issuer: "Example Hosting",
      organization: { id: "acme", name: NAME },
      carried_out: 0.75,
      taxes: [{ name: "ISS", rate: "2.9", amount: 9 }],
      lines: [
        {
          line: 1,
          project_id: "nightly",
          kind: "job_run",
          unit: "minute",
          quantity: 3,
          unit_amount: 100.25,
          charges: 3,
        },
        { line: 2, project_id: "weekly", amount: 7 },
      ],
      pagination: { page: 1, total: 2, pages: 1 },
    });
    const second = await get(`${INVOICES}/${number}?page=2&limit=1`);
    expect(second.json().data.lines.map(({ line }: { line: number }) => line)).toEqual([2]);
    expect((await get(`${INVOICES}?page=2`)).json().data.invoices).toEqual([]);
  });

  // Shows: docs/invoices.md#over-v1: `GET /v1/organization/invoices/:invoiceId/charges` |
  test("name the charges of each line", async () => {
    const { data } = (await get(`${INVOICES}/${number}/charges?line=1&limit=2&page=2`)).json();
    expect(data.pagination).toEqual({ page: 2, limit: 2, total: 3, pages: 2 });
    expect(data.charges).toEqual([
      {
        key: expect.stringMatching(/^job_run\/nightly\/nightly-\d+$/),
        line: 1,
        at: "2026-01-01T03:00:03.000Z",
        quantity: 1,
        amount: 100.25,
      },
    ]);
    expect((await get(`${INVOICES}/${number}/charges?line=9`)).json().data.charges).toEqual([]);
  });

  // Shows: docs/invoices.md#over-v1: JSON, CSV of the lines, or HTML
  test("are CSV and a page to print, too", async () => {
    const csv = await get(`${INVOICES}/${number}?format=csv`);
    expect(csv.headers["content-type"]).toMatch(/^text\/csv/);
    expect(csv.headers["content-disposition"]).toBe(`attachment; filename="invoice-${number}.csv"`);
    expect(csv.body.split("\r\n")[1]).toBe(
      `${number},1,nightly,job_run,job-basic,minute,3,100.25,300.75,brl,3,`,
    );
    expect(csv.headers.link).toBeUndefined();
    for (const format of ["csv", "html"]) {
      const first = await get(`${INVOICES}/${number}?format=${format}&limit=1`);
      const link = `${INVOICES}/${number}?format=${format}&page=2&limit=1`;
      expect(first.headers.link).toBe(`<${link}>; rel="next"`);
      const second = await get(link);
      expect([second.body.includes("weekly"), second.headers.link]).toEqual([true, undefined]);
    }
    const html = await get(`${INVOICES}/${number}`, { ...reader, accept: "text/html" });
    expect(html.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": expect.stringContaining("default-src 'none'"),
    });
    expect(html.body).toContain("&lt;b onclick=&quot;x()&quot;&gt;Acme &amp; Co&lt;/b&gt; (acme)");
    expect(html.body).not.toContain("<b ");
    expect((await get(`${INVOICES}/${number}?format=pdf`)).statusCode).toBe(400);
  });

  // Shows: docs/invoices.md#over-v1: 404 | `INVOICE_NOT_FOUND`
  // Shows: docs/invoices.md#over-v1: The needed permission is `organization.invoices.read`
  test("are of their organization alone", async () => {
    const other = harness.key("other", "* on organization:*");
    for (const path of [`/${number}`, `/${number}/charges`, `/${number}?format=csv`]) {
      expect(statusAndCode(await get(INVOICES + path, other))).toEqual([404, "INVOICE_NOT_FOUND"]);
    }
    expect((await get(INVOICES, other)).json().data.invoices).toEqual([]);
    for (const unknown of ["2026-999999", "x", "CN-2026-000001", "2026-000001'--", "%00"]) {
      expect(statusAndCode(await get(`${INVOICES}/${unknown}`))).toEqual([404, "INVOICE_NOT_FOUND"]);
    }
    const without = harness.key("acme", "organization.webhooks.read on organization:*", "* on project:*");
    expect(statusAndCode(await get(INVOICES, without))).toEqual([403, "PERMISSION_DENIED"]);
    expect((await get(INVOICES, await harness.owner("acme"))).statusCode).toBe(200);
  });

  test("show what was paid and credited", async () => {
    expect(await payInvoice(ledger, { number, reference: "p1", amountCents: 100n })).toBe("recorded");
    await issueCreditNote(ledger, { number, reference: "c1", reason: "An outage", netCents: 10n });
    const { data } = (await get(`${INVOICES}/${number}`)).json();
    expect(data).toMatchObject({
      status: "open",
      paid_amount: 100,
      credited_amount: 10,
      open_amount: 206,
      payments: [{ kind: "payment", reference: "p1", amount: 100 }],
      credit_notes: [{ id: expect.stringMatching(/^CN-\d{4}-000001$/), reason: "An outage", net_amount: 10 }],
    });
    expect(await findInvoice(ledger, number, "acme")).toMatchObject({ totalCents: 316n });
  });

  test("of 10,000 lines are read", async () => {
    await sql`
      insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan,
        instance, price, amount)
      select 'big', 'p' || n, 'u' || n, 'u' || n || '/instance_hour/0/0', 'instance_hour', '2026-02-10T00:00:00Z',
        '2026-02-10T01:00:00Z', '2026-02-10T01:00:00Z', '2026-02-01', 'basic', 0, 3, 3
      from generate_series(1, 10000) n`.execute(ledger);
    await settleCycle(ledger, new Date("2026-02-01T00:00:00Z"));
    const terms = { issuer: "", dueDays: 0, taxes: { default: [], countries: {} } };
    const big = await issueInvoice(ledger, { organizationId: "big", cycle: "2026-02-01" }, terms);
    const headers = harness.key("big", "* on organization:*");
    const figures: string[] = [];
    for (const format of ["json", "csv", "html"]) {
      const began = performance.now();
      const { body, statusCode } = await get(`${INVOICES}/${big}?format=${format}`, headers);
      expect([format, statusCode, body.includes("p10000")]).toEqual([format, 200, true]);
      figures.push(
        `${format} ${Math.round(performance.now() - began)} ms, ${Math.round(body.length / 1024)} KiB`,
      );
    }
    console.log(`invoice of 10,000 lines over /v1: ${figures.join("; ")}`);
  });
});
