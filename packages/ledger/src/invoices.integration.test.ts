import { readFileSync } from "node:fs";
import { type PlanCharge, planAdjustments, planCharges, type TaxTable } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { jobRun, storageHour } from "../../../test/kit/ledger/charged-rows.ts";
import { insertInvoice } from "../../../test/kit/ledger/invoice.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import {
  beginInvoicing,
  billableHistories,
  completeInvoiceCycle,
  cyclesToInvoice,
  findInvoice,
  type InvoiceTerms,
  issueCreditNote,
  issueInvoice,
  type Ledger,
  listCreditNotes,
  listInvoiceCharges,
  listInvoiceLines,
  listInvoices,
  listSettlements,
  nextInvoicesDue,
  openCents,
  organizationsToInvoice,
  payInvoice,
  projectsToMeter,
  recordBillableChanges,
  recordedPlanCharges,
  recordJobRuns,
  recordPlanAdjustments,
  recordPlanCharges,
  recordStorageCharges,
  reversePayment,
  settleCycle,
} from "./index.ts";
import { planChargesToInvoice } from "./invoice-cycles.ts";

let server: TestJobLedger;

beforeAll(async () => {
  server = await startJobLedger();
});
afterAll(() => server?.stop());
beforeEach(() => server.empty());

const HOUR = 3_600_000;
const JANUARY = "2026-01-01";
const FEBRUARY = "2026-02-01";
const at = (text: string) => new Date(`2026-${text}Z`);
const taxes: TaxTable = { default: [{ name: "ISS", rate: "2.9" }], countries: {} };
const terms: InvoiceTerms = { issuer: "Slipway Ltd.", dueDays: 14, taxes };
const untaxed: InvoiceTerms = { ...terms, taxes: { default: [], countries: {} } };
const key = (cycle: string, organizationId = "acme") => ({ organizationId, cycle });

async function charges(facts: Partial<PlanCharge>[], projectUid = "u1"): Promise<void> {
  const window = {
    organizationId: "acme",
    projectId: "shop",
    projectUid,
    ended: false,
    arrivals: 9,
    until: new Date(),
  };
  const all = facts.map((one, index): PlanCharge => {
    const from = at("01-10T00:00:00").getTime() + index * HOUR;
    const kind = one.kind ?? "instance_hour";
    const base = {
      key: `${projectUid}/${kind}/${kind === "credit" || kind === "term" ? from : index}/0`,
      kind,
      from,
      to: from + HOUR,
      finalAt: from + HOUR,
    };
    return { ...base, plan: "basic", instance: 0, price: "3", amount: "3", ...one };
  });
  await recordPlanCharges(server.ledger, [{ ...window, charges: all }]);
}
/** What a late change made a fact of January cost more or less, in February. */
async function adjustment(facts: {
  kind: string;
  adjusts: string;
  gb?: number;
  price: string;
  amount: string;
  from?: Date;
}) {
  const { kind, adjusts, gb = null, price, amount, from = at("01-10T00:00:00") } = facts;
  const to = new Date(from.getTime() + HOUR);
  await sql`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan, instance,
      gb, price, amount, adjusts, late_at)
    values ('acme', 'shop', 'u1', ${`u1/${kind}/late/0/${adjusts.slice(3)}`}, ${kind}, ${from}, ${to}, ${to}, ${FEBRUARY}::date,
      ${gb === null ? "basic" : null}, ${gb === null ? 0 : null}, ${gb}, ${price}, ${amount}, ${adjusts}, ${at("02-10T00:00:00")})`.execute(
    server.ledger,
  );
}

/** A ledger whose process ends after so many statements. */
function endingAfter(statements: number): Ledger {
  let left = statements;
  return server.ledger.withPlugin({
    transformQuery: ({ node }) => {
      left -= 1;
      if (left < 0) {
        throw new Error("the process has ended");
      }
      return node;
    },
    transformResult: async ({ result }) => result,
  });
}

const hourAt = (text: string): Partial<PlanCharge> => {
  const from = at(text).getTime();
  return { from, to: from + HOUR, finalAt: from + HOUR };
};
const runs = (...times: string[]) =>
  recordJobRuns(
    server.ledger,
    times.map((time) => jobRun({ organization_id: "acme", scheduled_at: at(time) })),
  );
const settle = (cycle: string) => settleCycle(server.ledger, new Date(`${cycle}T00:00:00Z`));
const lines = async (number: string | undefined) => {
  const invoice = await findInvoice(server.ledger, number ?? "");
  const found = invoice ? await listInvoiceLines(server.ledger, invoice, { after: 0, limit: 100 }) : [];
  return found.map(({ projectId, kind, plan, quantity, unitPrice, amount, adjusts }) =>
    [projectId, kind, plan ?? "-", quantity, unitPrice, amount, ...(adjusts ? ["adjusts"] : [])].join(" "),
  );
};

describe("an invoice", () => {
  beforeEach(() => beginInvoicing(server.ledger, at("01-15T12:00:00")));

  test("has a line for each project, kind, plan and price, with the facts of each", async () => {
    await runs("01-05T10:00:00", "01-05T11:00:00");
    await recordStorageCharges(server.ledger, [
      storageHour({ organization_id: "acme", from: at("01-05T10:00:00") }),
    ]);
    await charges([{}, {}, { price: "4", amount: "4" }, { kind: "credit", price: "9", amount: "2.5" }]);
    await settle(JANUARY);
    const number = await issueInvoice(server.ledger, key(JANUARY), terms);
    expect(number).toMatch(/^20\d\d-000001$/);
    expect(await lines(number)).toEqual([
      "nightly job_run job-basic 2 0.35 0.7",
      "nightly storage - 10 0.012 0.12",
      "shop credit basic 1 -2.5 -2.5",
      "shop instance_hour basic 2 3 6",
      "shop instance_hour basic 1 4 4",
    ]);
    const invoice = await findInvoice(server.ledger, String(number), "acme");
    expect(invoice).toMatchObject({
      cycleStart: at("01-01T00:00:00"),
      lineCount: 5,
      chargeCount: 7,
      carryIn: "0",
      subtotal: "8.32",
      netCents: 8n,
      carryOut: "0.32",
      taxes: [{ name: "ISS", rate: "2.9", cents: 0n }],
      totalCents: 8n,
      state: "open",
    });
    if (!invoice) {
      throw new Error("no invoice");
    }
    const { charges: facts, total } = await listInvoiceCharges(server.ledger, invoice, {
      limit: 2,
      offset: 5,
    });
    expect(total).toBe(7);
    expect(facts.map(({ key: name, quantity, amount }) => [name, quantity, amount])).toEqual([
      ["u1/instance_hour/1/0", "1", "3"],
      ["u1/instance_hour/2/0", "1", "4"],
    ]);
    expect(await findInvoice(server.ledger, String(number), "other")).toBeUndefined();
  });

  // Shows: docs/invoices.md#issue: an invoice for each organization and cycle that has charges, once
  // Shows: docs/invoices.md#issue: numbers of a year without gaps
  test("is issued once by several processes, whatever the number of repeats, and numbers have no gaps", async () => {
    const organizations = Array.from({ length: 4 }, (_, index) => `org-${index}`);
    await recordJobRuns(
      server.ledger,
      organizations.map((organization_id) => jobRun({ organization_id, scheduled_at: at("01-05T10:00:00") })),
    );
    await settle(JANUARY);
    const pools = [server.ledger, server.connect(), server.connect()];
    expect(await organizationsToInvoice(server.ledger, JANUARY)).toEqual(organizations);
    const given = await Promise.all(
      organizations.flatMap((id) => pools.map((pool) => issueInvoice(pool, key(JANUARY, id), terms))),
    );
    const numbers = given.filter((number) => number !== undefined);
    expect(numbers.map((number) => number.slice(5)).sort()).toEqual(["000001", "000002", "000003", "000004"]);
    expect((await listInvoices(server.ledger, { limit: 10, offset: 0 })).total).toBe(4);
    expect(await organizationsToInvoice(server.ledger, JANUARY)).toEqual([]);
  });

  test("whose transaction ends before its commit leaves no number behind", async () => {
    await runs("01-05T10:00:00");
    await settle(JANUARY);
    const negative: InvoiceTerms = { ...terms, dueDays: -1 };
    await expect(issueInvoice(server.ledger, key(JANUARY), negative)).rejects.toThrow(/due_later/);
    expect((await listInvoices(server.ledger, { limit: 10, offset: 0 })).total).toBe(0);
    expect(await issueInvoice(server.ledger, key(JANUARY), terms)).toMatch(/-000001$/);
  });

  test("whose process ends between any two statements leaves nothing behind, and is issued once afterwards", async () => {
    await runs("01-05T10:00:00", "01-05T11:00:00");
    await charges([{}]);
    await settle(JANUARY);
    let number: string | undefined;
    let ends = 0;
    while (number === undefined) {
      number = await issueInvoice(endingAfter(ends), key(JANUARY), terms).catch(() => undefined);
      if (number === undefined) {
        ends += 1;
        const { rows } = await sql<{ left: number }>`
          select ((select count(*) from invoices) + (select count(*) from invoice_lines) + (select count(*) from invoice_charges)
            + (select count(*) from document_numbers))::int as left`.execute(server.ledger);
        expect(rows).toEqual([{ left: 0 }]);
      }
      expect(ends).toBeLessThan(20);
    }
    expect(ends).toBeGreaterThan(4);
    expect(number).toMatch(/-000001$/);
    expect(await findInvoice(server.ledger, number)).toMatchObject({ chargeCount: 3 });
    // The answer was lost: it is asked for again.
    expect(await issueInvoice(server.ledger, key(JANUARY), terms)).toBeUndefined();
  });

  test("carries fractions as settlements do, and what credits leave over", async () => {
    await runs("01-05T10:00:00", "01-05T11:00:00");
    await settle(JANUARY);
    await runs("02-05T10:00:00", "02-05T11:00:00");
    await charges([{ kind: "credit", price: "9", amount: "5", ...hourAt("02-03T00:00:00") }]);
    await settle("2026-03-01");
    await runs("04-05T10:00:00");
    await charges([hourAt("04-03T00:00:00")], "u2");
    await settle("2026-04-01");
    for (const cycle of [JANUARY, FEBRUARY, "2026-03-01", "2026-04-01"]) {
      await issueInvoice(server.ledger, key(cycle), untaxed);
    }
    const { invoices } = await listInvoices(server.ledger, { organizationId: "acme", limit: 10, offset: 0 });
    expect(
      invoices.map(({ carryIn, subtotal, netCents, carryOut, state }) => [
        carryIn,
        subtotal,
        netCents,
        carryOut,
        state,
      ]),
    ).toEqual([
      ["-3.6", "3.35", 0n, "-0.25", "paid"],
      ["0.7", "-4.3", 0n, "-3.6", "paid"],
      ["0", "0.7", 0n, "0.7", "paid"],
    ]);
  });

  test("of runs and storage alone is what was settled, from the first one on", async () => {
    await server.empty();
    await runs("01-05T10:00:00", "01-05T11:00:00", "02-05T10:00:00", "02-05T11:00:00", "03-01T10:00:00");
    await settle("2026-03-01");
    await beginInvoicing(server.ledger, at("02-28T23:00:00"));
    expect(await issueInvoice(server.ledger, key(JANUARY), untaxed)).toBeUndefined();
    expect(await cyclesToInvoice(server.ledger)).toEqual([FEBRUARY, "2026-03-01"]);
    for (const cycle of await cyclesToInvoice(server.ledger)) {
      await issueInvoice(server.ledger, key(cycle), untaxed);
    }
    const { invoices } = await listInvoices(server.ledger, { organizationId: "acme", limit: 10, offset: 0 });
    const settled = await listSettlements(server.ledger, { organizationId: "acme" });
    expect(invoices.map(({ carryIn, netCents }) => [carryIn, netCents])).toEqual(
      settled.slice(0, 2).map(({ carry_in, charged_cents }) => [carry_in, charged_cents]),
    );
  });

  // Shows: docs/invoices.md#issue: a day after the end of the cycle, once it is settled; what is charged later is on the next one
  test("has a late charge once, in the next cycle, and none after its cycle is complete", async () => {
    await charges([{}]);
    await runs("01-05T10:00:00");
    await settle(JANUARY);
    const first = await issueInvoice(server.ledger, key(JANUARY), untaxed);
    await charges([{}, {}]);
    await completeInvoiceCycle(server.ledger, JANUARY);
    await recordJobRuns(server.ledger, [
      jobRun({ organization_id: "late", scheduled_at: at("01-06T10:00:00") }),
    ]);
    expect(await issueInvoice(server.ledger, key(JANUARY, "late"), untaxed)).toBeUndefined();
    expect(await cyclesToInvoice(server.ledger)).toEqual([]);
    await settle(FEBRUARY);
    expect(await cyclesToInvoice(server.ledger)).toEqual([FEBRUARY]);
    const { rows: ended } = await sql<{ hours: number }>`
      select floor(extract(epoch from now() - '2026-03-01T00:00:00Z'::timestamptz) / 3600)::int as hours`.execute(
      server.ledger,
    );
    expect(await cyclesToInvoice(server.ledger, ended[0]?.hours)).toEqual([FEBRUARY]);
    expect(await cyclesToInvoice(server.ledger, (ended[0]?.hours ?? 0) + 2)).toEqual([]);
    expect(await organizationsToInvoice(server.ledger, FEBRUARY)).toEqual(["acme", "late"]);
    const second = await issueInvoice(server.ledger, key(FEBRUARY), untaxed);
    await issueInvoice(server.ledger, key(FEBRUARY, "late"), untaxed);
    expect(await lines(first)).toEqual([
      "nightly job_run job-basic 1 0.35 0.35",
      "shop instance_hour basic 1 3 3",
    ]);
    expect(await lines(second)).toEqual(["shop instance_hour basic 1 3 3"]);
    expect(await organizationsToInvoice(server.ledger, FEBRUARY)).toEqual([]);
    await completeInvoiceCycle(server.ledger, FEBRUARY);
    await settle("2026-03-01");
    expect(await organizationsToInvoice(server.ledger, "2026-03-01")).toEqual([]);
    const { rows } = await sql<{ charged: number; invoiced: number }>`
      select ((select count(*) from charges) + (select count(*) from plan_charges))::int as charged,
        (select count(*)::int from invoice_charges) as invoiced`.execute(server.ledger);
    expect(rows).toEqual([{ charged: 4, invoiced: 4 }]);
  });

  // Shows: docs/invoices.md#what-is-not-so: Charges of plans from cycles before the first invoice are on none
  test("has what adjusts a fact on lines of its own, a whole fact as what it is, and nothing that belongs to a fact from before the first cycle", async () => {
    const december = new Date("2025-12-10T00:00:00Z");
    const term = december.getTime();
    const before = {
      kind: "term",
      key: `u1/term/${term}/0`,
      from: term,
      to: term + 365 * 24 * HOUR,
      finalAt: term,
    } as const;
    await charges([
      {},
      { ...before, price: "25920", amount: "25920" },
      { kind: "credit", key: `u1/credit/${term}/0`, price: "25920", amount: "25000" },
    ]);
    await adjustment({ kind: "instance_hour", adjusts: "u1/instance_hour/0/0", price: "8", amount: "5" });
    await adjustment({ kind: "credit", adjusts: "u1/storage_hour/0", gb: 10, price: "0.1", amount: "0.4" });
    await adjustment({
      kind: "storage_hour",
      adjusts: "u1/storage_hour/1",
      gb: 10,
      price: "0.1",
      amount: "0.3",
    });
    const whole = { kind: "storage_hour", gb: 10, price: "0.1", amount: "1" };
    await adjustment({ ...whole, adjusts: "u1/storage_hour/2" });
    await adjustment({
      kind: "instance_hour",
      adjusts: "u1/instance_hour/9/0",
      price: "8",
      amount: "7",
      from: december,
    });
    await adjustment({ kind: "term", adjusts: `u1/credit/${term}/0`, price: "25920", amount: "11" });
    await adjustment({
      kind: "credit",
      adjusts: `u1/term/${term}/0`,
      price: "25920",
      amount: "12",
      from: december,
    });
    await settle(JANUARY);
    await settle(FEBRUARY);
    expect(await lines(await issueInvoice(server.ledger, key(JANUARY), untaxed))).toEqual([
      "shop instance_hour basic 1 3 3",
    ]);
    const number = String(await issueInvoice(server.ledger, key(FEBRUARY), untaxed));
    expect(await lines(number)).toEqual([
      "shop credit - 1 -0.4 -0.4 adjusts",
      "shop instance_hour basic 1 5 5 adjusts",
      "shop storage_hour - 10 0.1 1",
      "shop storage_hour - 1 0.3 0.3 adjusts",
    ]);
    const invoice = await findInvoice(server.ledger, number);
    const listed =
      invoice && (await listInvoiceCharges(server.ledger, invoice, { line: 3, limit: 9, offset: 0 }));
    expect(listed?.charges).toMatchObject([{ key: "u1/storage_hour/late/0/storage_hour/2", adjusts: true }]);
  });

  test("is due a day after the end of the oldest cycle that has not all of them", async () => {
    const due = async () => (await nextInvoicesDue(server.ledger))?.toISOString();
    expect(await due()).toBe("2026-02-02T00:00:00.000Z");
    await settle(JANUARY);
    await settle(FEBRUARY);
    expect(await due()).toBe("2026-02-02T00:00:00.000Z");
    await completeInvoiceCycle(server.ledger, FEBRUARY);
    expect(await due()).toBe("2026-02-02T00:00:00.000Z");
    await completeInvoiceCycle(server.ledger, JANUARY);
    expect(await due()).toBe("2026-04-02T00:00:00.000Z");
  });

  test("is not issued before its cycle is settled", async () => {
    await runs("01-05T10:00:00");
    expect(await cyclesToInvoice(server.ledger)).toEqual([]);
    expect(await issueInvoice(server.ledger, key(JANUARY), terms)).toBeUndefined();
  });

  test("has the taxes of its organization's country, each rounded once", async () => {
    await sql`insert into organizations (id, name) values ('acme', 'Acme & Söhne') on conflict do nothing`.execute(
      server.ledger,
    );
    await sql`insert into organization_countries (organization_id, country) values ('acme', 'BR') on conflict do nothing`.execute(
      server.ledger,
    );
    await charges([{ price: "10050", amount: "10050" }]);
    await settle(JANUARY);
    const table: TaxTable = {
      default: [],
      countries: {
        BR: [
          { name: "ISS", rate: "2.9" },
          { name: "PIS", rate: "0.65" },
        ],
      },
    };
    const number = await issueInvoice(server.ledger, key(JANUARY), { ...terms, taxes: table });
    expect(await findInvoice(server.ledger, String(number))).toMatchObject({
      organizationName: "Acme & Söhne",
      country: "BR",
      netCents: 10_050n,
      taxes: [
        { name: "ISS", rate: "2.9", cents: 291n },
        { name: "PIS", rate: "0.65", cents: 65n },
      ],
      taxCents: 356n,
      totalCents: 10_406n,
    });
  });
});

/** What the statement of the page finds. */
async function audit(): Promise<string[]> {
  const page = readFileSync(new URL("../../../docs/invoices.md", import.meta.url), "utf8");
  const [, statement = ""] = /```sql\n(.*?)```/s.exec(page) ?? [];
  const { rows } = await sql.raw<{ wrong: string; what: string }>(statement).execute(server.ledger);
  return rows.map(({ wrong, what }) => `${wrong} ${what.replace(/^20\d\d/, "YEAR")}`).sort();
}

// Shows: docs/invoices.md#audit: This statement has no row where every number is there
test("the audit of the page finds nothing, and what a test alone can break", async () => {
  const before = `u1/credit/${Date.parse("2025-12-10T00:00:00Z")}/0`;
  await beginInvoicing(server.ledger, at("01-15T12:00:00"));
  await runs("01-05T10:00:00", "01-05T11:00:00");
  await charges([
    ...[{}, {}, { kind: "credit", price: "9", amount: "2.5" } as const],
    { kind: "credit", key: before, price: "25920", amount: "25000" },
  ]);
  await adjustment({ kind: "instance_hour", adjusts: "u1/instance_hour/0/0", price: "8", amount: "5" });
  await settle(JANUARY);
  await issueInvoice(server.ledger, key(JANUARY), terms);
  await completeInvoiceCycle(server.ledger, JANUARY);
  await runs("02-05T10:00:00");
  await settle(FEBRUARY);
  await issueInvoice(server.ledger, key(FEBRUARY), terms);
  await completeInvoiceCycle(server.ledger, FEBRUARY);
  expect(await audit()).toEqual([]);
  await server.ledger.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = replica`.execute(transaction);
    await sql`update document_numbers set last = 3`.execute(transaction);
    await sql`update invoices set carry_in = carry_in + 0.1, subtotal = subtotal - 0.1 where cycle_start = ${FEBRUARY}::date`.execute(
      transaction,
    );
    await sql`delete from unpaid_invoices where invoice_number like '%-000001'`.execute(transaction);
    await sql`delete from invoice_charges where charge_key = 'u1/instance_hour/0/0'`.execute(transaction);
    await sql`update invoice_charges set cycle_start = ${JANUARY}::date where charge_key like '%/late/%'`.execute(
      transaction,
    );
    await sql`
      insert into invoice_charges (organization_id, charge_key, cycle_start, line, at, quantity, amount)
      values ('acme', ${before}, ${JANUARY}, 1, now(), 1, -25000), ('acme', 'u1/term/9/0', ${JANUARY}, 1, now(), 1, 9)`.execute(
      transaction,
    );
  });
  expect(await audit()).toEqual([
    "carry YEAR-000002",
    "charge u1/instance_hour/0/0",
    "missing number YEAR-000003",
    `not of this invoice ${before}`,
    "not of this invoice u1/instance_hour/late/0/instance_hour/0/0",
    "not of this invoice u1/term/9/0",
    "unpaid YEAR-000001",
  ]);
});

test("an invoice that tests insert is of a cycle that the platform has closed, and the audit finds nothing", async () => {
  const inserted = {
    organizationId: "acme",
    name: "Acme",
    lines: [
      { projectId: "shop", plan: "basic", hours: 3, price: "236.123456789" },
      { projectId: "shop", plan: "free", hours: 1, price: "2" },
    ],
  };
  await expect(insertInvoice(server.ledger, inserted)).rejects.toThrow("no billing cycle is settled yet");
  await settle(JANUARY);
  // Where the platform issues none, as where it does.
  const number = await insertInvoice(server.ledger, inserted);
  expect(await audit()).toEqual([]);
  await beginInvoicing(server.ledger, at("01-15T12:00:00"));
  await completeInvoiceCycle(server.ledger, JANUARY);
  await settle(FEBRUARY);
  await completeInvoiceCycle(server.ledger, FEBRUARY);
  expect(await audit()).toEqual([]);
  expect(await lines(number)).toEqual([
    "shop instance_hour basic 3 236.123456789 708.370370367",
    "shop instance_hour free 1 2 2",
  ]);
  expect(await findInvoice(server.ledger, number)).toMatchObject({ totalCents: 731n, chargeCount: 4 });
});

test("what a late change gives back of an issued invoice is on the next one, and the audit finds nothing", async () => {
  const project = { organizationId: "acme", projectId: "shop", projectUid: "u1" };
  const state = { plan: "basic", paymentMode: "hourly", renews: true, paused: false, billedGb: 0 } as const;
  const begin = at("01-10T00:00:00").getTime();
  const until = new Date(begin + 2 * HOUR + 1);
  const prices = { hourly: "3", monthly: "2160", yearly: "25920", refund: "none" } as const;
  const lists = [{ from: 0, gbHour: "0", plans: { basic: prices } }];
  const change = (number: number, instances: number) =>
    recordBillableChanges(server.ledger, [
      { ...project, number, at: new Date(begin + (number - 1) * HOUR), state: { ...state, instances } },
    ]);
  const costs = async () => {
    const [history] = await billableHistories(server.ledger, ["u1"]);
    return history ? planCharges(history, lists, { until: until.getTime() }) : [];
  };
  await beginInvoicing(server.ledger, at("01-01T00:00:00"));
  await change(1, 1);
  const final = (await costs()).filter(({ finalAt }) => finalAt < until.getTime());
  await recordPlanCharges(server.ledger, [{ ...project, until, ended: false, arrivals: 1, charges: final }]);
  await settle(JANUARY);
  const first = await issueInvoice(server.ledger, key(JANUARY), untaxed);
  await completeInvoiceCycle(server.ledger, JANUARY);
  expect(await change(2, 0)).toMatchObject([{ outcome: "late" }]);
  const [{ arrivals = 0, late } = {}] = await projectsToMeter(server.ledger);
  if (!late) {
    throw new Error("no late change");
  }
  const recorded = await recordedPlanCharges(server.ledger, "u1", new Date(begin));
  const adjustments = planAdjustments(await costs(), recorded, late.pass);
  const adjusted = { ...project, until, arrivals, late, ended: false, charges: adjustments };
  expect(await recordPlanAdjustments(server.ledger, adjusted)).toBe(1);
  // As if it had come in February.
  await server.ledger.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = replica`.execute(transaction);
    await sql`
      update plan_charges set late_at = ${at("02-10T00:00:00")}, cycle_start = ${FEBRUARY}::date where adjusts is not null`.execute(
      transaction,
    );
  });
  await settle(FEBRUARY);
  const second = await issueInvoice(server.ledger, key(FEBRUARY), untaxed);
  await completeInvoiceCycle(server.ledger, FEBRUARY);
  expect(await lines(first)).toEqual(["shop instance_hour basic 2 3 6"]);
  expect(await lines(second)).toEqual(["shop credit basic 1 -3 -3 adjusts"]);
  expect(await audit()).toEqual([]);
});

test("a charge whose transaction began before an invoice, and ended after it, is on the next one", async () => {
  await beginInvoicing(server.ledger, at("01-15T12:00:00"));
  await charges([{}]);
  await settle(JANUARY);
  await issueInvoice(server.ledger, key(JANUARY), untaxed);
  const late = (index: number, hoursBefore: number) => sql`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan, instance,
      price, amount, recorded_at)
    select 'acme', 'shop', 'u1', 'u1/instance_hour/' || ${index}::int || '/0', 'instance_hour', ${at("01-12T00:00:00")},
      ${at("01-12T01:00:00")}, ${at("01-12T01:00:00")}, ${JANUARY}::date, 'basic', 0, 3, 3,
      issued_at - make_interval(mins => ${hoursBefore * 60}::int) from invoices`;
  await late(90, 0.5).execute(server.ledger);
  // Nothing takes so long: it was seen.
  await late(91, 1.5).execute(server.ledger);
  await settle(FEBRUARY);
  const number = String(await issueInvoice(server.ledger, key(FEBRUARY), untaxed));
  const invoice = await findInvoice(server.ledger, number);
  const listed = invoice && (await listInvoiceCharges(server.ledger, invoice, { limit: 9, offset: 0 }));
  expect(listed?.charges.map((one) => one.key)).toEqual(["u1/instance_hour/90/0"]);
});

test("an invoice reads what came late by its index, and not all that was charged", async () => {
  await beginInvoicing(server.ledger, at("01-15T12:00:00"));
  await charges([{}]);
  await settle(JANUARY);
  await issueInvoice(server.ledger, key(JANUARY), untaxed);
  await sql`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan,
      instance, price, amount, recorded_at)
    select 'acme', 'shop', 'u1', 'u1/instance_hour/x/' || n, 'instance_hour', '2026-01-10T00:00:00Z', '2026-01-10T01:00:00Z',
      '2026-01-10T01:00:00Z', '2026-01-01', 'basic', n, 3, 3, '2026-01-10T01:10:00Z' from generate_series(1, 3000) n`.execute(
    server.ledger,
  );
  await sql`analyze plan_charges`.execute(server.ledger);
  const { rows } = await sql<Record<string, string>>`
    explain select * from ${planChargesToInvoice(sql`'acme'::text`, FEBRUARY)} p`.execute(server.ledger);
  const plan = rows.map((row) => Object.values(row).join()).join("\n");
  const indexes = [...plan.matchAll(/(?:using|Index Scan on) (plan_charges_\w+)/g)].map(([, name]) => name);
  expect(indexes).toEqual(["plan_charges_cycle", "plan_charges_late"]);
});

describe("what is issued", () => {
  // Shows: docs/invoices.md#issue: nothing of it is ever changed or removed
  test.each([
    "update invoices set total_cents = 0",
    "delete from invoices",
    "truncate invoices cascade",
    "update invoice_lines set amount = 0",
    "delete from invoice_lines",
    "truncate invoice_lines cascade",
    "update invoice_charges set amount = 0",
    "delete from invoice_charges",
    "truncate invoice_charges",
    "delete from invoice_cycles",
    "update invoicing set first_cycle = '2020-01-01'",
    "update document_numbers set last = last + 1",
    "insert into document_numbers values ('credit_note', 2026, 1)",
    "update document_numbers set last = last + 2",
    "update document_numbers set last = last - 1",
    "delete from document_numbers",
    "truncate document_numbers",
    "insert into invoice_lines select organization_id, cycle_start, 9, 'x', 'term', null, 1, 1, 1, 1 from invoices",
    "insert into invoice_charges select organization_id, 'x', cycle_start, 1, now(), 1, 1 from invoices",
    "insert into invoice_charges select 'other', 'x', cycle_start, 1, now(), 1, 1 from invoices",
    "do $$ begin set local slipway.retire_before = '2026-01-31T23:59:59Z'; delete from invoice_charges; end $$",
  ])("cannot be changed by: %s", async (statement) => {
    await beginInvoicing(server.ledger, at("01-15T12:00:00"));
    await runs("01-05T10:00:00");
    await settle(JANUARY);
    await issueInvoice(server.ledger, key(JANUARY), terms);
    await completeInvoiceCycle(server.ledger, JANUARY);
    await expect(sql.raw(statement).execute(server.ledger)).rejects.toMatchObject({
      code: expect.stringMatching(/^23(000|503)$/),
    });
  });

  // Shows: docs/ledger.md#retention: Rows of `invoice_charges` can be deleted by hand
  test("has charges that can be deleted by hand once no later invoice reads them, and are on none then", async () => {
    const deleteCharges = () =>
      sql`do $$ begin set local slipway.retire_before = '2026-02-01T00:00:00Z'; delete from invoice_charges where cycle_start = '2026-01-01'; end $$`.execute(
        server.ledger,
      );
    await beginInvoicing(server.ledger, at("01-15T12:00:00"));
    await runs("01-05T10:00:00", "02-05T10:00:00", "03-01T10:00:00");
    await charges([{}]);
    await settle(JANUARY);
    const number = await issueInvoice(server.ledger, key(JANUARY), untaxed);
    await expect(deleteCharges()).rejects.toMatchObject({ code: "23000" });
    await settle(FEBRUARY);
    await issueInvoice(server.ledger, key(FEBRUARY), untaxed);
    await expect(deleteCharges()).rejects.toMatchObject({ code: "23000" });
    await server.ledger.transaction().execute(async (transaction) => {
      await sql`set local session_replication_role = replica`.execute(transaction);
      await sql`update invoices set issued_at = issued_at - interval '3 hours' where number = ${number}`.execute(
        transaction,
      );
      await sql`update plan_charges set recorded_at = recorded_at - interval '3 hours'`.execute(transaction);
    });
    await deleteCharges();
    const { rows } = await sql<{ cycle: string }>`
      select distinct cycle_start::text as cycle from invoice_charges`.execute(server.ledger);
    expect(rows).toEqual([{ cycle: FEBRUARY }]);
    expect(await lines(number)).toHaveLength(2);
    await settle("2026-03-01");
    expect(await lines(await issueInvoice(server.ledger, key("2026-03-01"), untaxed))).toEqual([
      "nightly job_run job-basic 1 0.35 0.35",
    ]);
  });

  test("has only numbers of its series, and adds up", async () => {
    await beginInvoicing(server.ledger, at("01-15T12:00:00"));
    await runs("01-05T10:00:00");
    await settle(JANUARY);
    await issueInvoice(server.ledger, key(JANUARY), terms);
    const copy = (number: string) => sql`
      insert into invoices select 'other', cycle_start, ${number}, organization_name, issuer, country, currency, issued_at, due_at,
        line_count, charge_count, carry_in, subtotal, net_cents, carry_out, taxes, tax_cents, total_cents from invoices`;
    const { rows } = await sql<{ number: string }>`select number from invoices`.execute(server.ledger);
    const [number = ""] = rows.map((row) => row.number);
    await expect(copy(number.replace("000001", "000007")).execute(server.ledger)).rejects.toThrow(
      /next number/,
    );
    await expect(copy(number).execute(server.ledger)).rejects.toThrow(/does not add up/);
  });
});

describe("the state of an invoice", () => {
  let number = "";
  beforeEach(async () => {
    await beginInvoicing(server.ledger, at("01-15T12:00:00"));
    await charges([{ price: "1000", amount: "1000" }]);
    await settle(JANUARY);
    number = (await issueInvoice(server.ledger, key(JANUARY, "acme"), terms)) ?? "";
  });
  const state = async () => {
    const invoice = await findInvoice(server.ledger, number);
    return invoice && [invoice.state, invoice.paidCents, invoice.creditedCents, openCents(invoice)];
  };

  test("follows from payments, each once by its reference, and from their reversals", async () => {
    const pay = (reference: string, amountCents?: bigint) =>
      payInvoice(server.ledger, { number, reference, amountCents });
    expect(await state()).toEqual(["open", 0n, 0n, 1_029n]);
    expect(await pay("p1", 29n)).toBe("recorded");
    expect(await Promise.all([pay("p1", 29n), pay("p1"), pay("p1", 30n)])).toEqual([
      "already",
      "already",
      "differs",
    ]);
    expect(await pay("p2", 1_001n)).toBe("exceeds");
    expect((await Promise.all([pay("p2"), pay("p3")])).sort()).toEqual(["exceeds", "recorded"]);
    expect(await pay("p4")).toBe("exceeds");
    expect(await state()).toEqual(["paid", 1_029n, 0n, 0n]);
    expect(await reversePayment(server.ledger, { number, reference: "p1" })).toBe("recorded");
    expect(await reversePayment(server.ledger, { number, reference: "p1" })).toBe("already");
    expect(await reversePayment(server.ledger, { number, reference: "other" })).toBe("unknown");
    expect(await pay("p1", 29n)).toBe("reversed");
    expect(await state()).toEqual(["open", 1_000n, 0n, 29n]);
    expect(await payInvoice(server.ledger, { number: "2026-999999", reference: "p1" })).toBe("unknown");
    for (const statement of [
      "update invoice_payments set amount_cents = 1",
      "delete from invoice_payments",
      "truncate invoice_payments",
    ]) {
      await expect(sql.raw(statement).execute(server.ledger)).rejects.toMatchObject({ code: "23000" });
    }
  });

  test("is overdue once its days have passed", async () => {
    const second = await findInvoice(server.ledger, number);
    expect(second?.dueAt.getTime()).toBe((second?.issuedAt.getTime() ?? 0) + 14 * 24 * HOUR);
    await charges([hourAt("02-03T00:00:00")], "u2");
    await settle(FEBRUARY);
    number = (await issueInvoice(server.ledger, key(FEBRUARY), { ...terms, dueDays: 0 })) ?? "";
    expect(await state()).toEqual(["overdue", 0n, 0n, 3n]);
  });

  test("follows from credit notes, which have numbers of their own and their part of each tax", async () => {
    const credit = (reference: string, netCents?: bigint, reason = "An outage") =>
      issueCreditNote(server.ledger, { number, reference, reason, netCents });
    expect(await credit("c0", 1_001n)).toEqual({ outcome: "exceeds" });
    expect(await credit("c1", 500n)).toMatchObject({
      outcome: "recorded",
      note: { netCents: 500n, taxes: [{ name: "ISS", rate: "2.9", cents: 15n }], totalCents: 515n },
    });
    const given = await Promise.all([credit("c2"), credit("c2"), credit("c1", 500n), credit("c1", 400n)]);
    expect(given.map((one) => one !== "unknown" && one.outcome).sort()).toEqual([
      "already",
      "already",
      "differs",
      "recorded",
    ]);
    expect(await credit("c3")).toEqual({ outcome: "exceeds" });
    const notes = await listCreditNotes(server.ledger, number);
    expect(notes.map((note) => [note.number.slice(8), note.netCents, note.taxCents])).toEqual([
      ["000001", 500n, 15n],
      ["000002", 500n, 14n],
    ]);
    expect(await state()).toEqual(["paid", 0n, 1_029n, 0n]);
    for (const statement of [
      "update credit_notes set net_cents = 1",
      "delete from credit_notes",
      "truncate credit_notes",
    ]) {
      await expect(sql.raw(statement).execute(server.ledger)).rejects.toMatchObject({ code: "23000" });
    }
    await expect(
      sql`insert into credit_notes (number, invoice_number, reference, reason, net_cents, taxes, tax_cents, total_cents)
        select 'CN-' || extract(year from now())::int || '-000002', ${number}, 'c9', 'x', 1, '[]', 0, 1`.execute(
        server.ledger,
      ),
    ).rejects.toMatchObject({ code: "23514" });
  });
});

test("an invoice of 10,000 lines", async () => {
  await beginInvoicing(server.ledger, at("01-15T12:00:00"));
  await sql`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan,
      instance, price, amount)
    select 'acme', 'p' || n / 10, 'u' || n / 10, 'u' || n / 10 || '/instance_hour/' || n || '/' || i, 'instance_hour',
      '2026-01-10T00:00:00Z', '2026-01-10T01:00:00Z', '2026-01-10T01:00:00Z', '2026-01-01', 'basic', i, n % 10 + 1, n % 10 + 1
    from generate_series(0, 9999) n, generate_series(0, 2) i`.execute(server.ledger);
  await settle(JANUARY);
  const began = performance.now();
  const number = await issueInvoice(server.ledger, key(JANUARY), terms);
  const issued = performance.now();
  const invoice = await findInvoice(server.ledger, String(number));
  expect(invoice).toMatchObject({ lineCount: 10_000, chargeCount: 30_000, subtotal: "165000" });
  const read = invoice && (await listInvoiceLines(server.ledger, invoice, { after: 0, limit: 10_000 }));
  expect(read).toHaveLength(10_000);
  const { rows: sizes } = await sql<{ bytes: number }>`
    select (pg_total_relation_size('invoice_charges') / 30000)::int as bytes`.execute(server.ledger);
  const ms = (from: number, to: number) => Math.round(to - from);
  console.log(
    `invoice of 10,000 lines and 30,000 charges: issued in ${ms(began, issued)} ms, read in ${ms(issued, performance.now())} ms; ${sizes[0]?.bytes} bytes of a charge`,
  );
});
