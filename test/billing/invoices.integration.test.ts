import { runAmount } from "@slipway/crds";
import {
  beginInvoicing,
  findInvoice,
  issueInvoice,
  listInvoiceLines,
  recordPlanCharges,
  settleCycle,
} from "@slipway/ledger";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startJobLedger, type TestJobLedger } from "../kit/ledger/job-ledger.ts";
import { instant, invoiceExamples, type WrittenInvoiceCharge } from "./page.ts";

/** The invoices that docs/billing.md has as examples, issued by the ledger. */

let server: TestJobLedger;

beforeAll(async () => {
  server = await startJobLedger();
});
afterAll(() => server?.stop());
beforeEach(() => server.empty());

const HOUR = 3_600_000;
const project = { organizationId: "acme", projectId: "shop", projectUid: "u1", ended: false, arrivals: 9 };
let charged = 0;

async function record(cycle: string, written: readonly WrittenInvoiceCharge[]): Promise<void> {
  const charges = written.map(({ kind, plan, gb, month = cycle, price, amount }) => {
    charged += 1;
    const began = instant(`${month}-10T00:00:00Z`);
    const from = kind === "credit" ? instant(`${cycle}-10T00:00:00Z`) : began;
    const times = { from, to: from + HOUR, finalAt: from + HOUR };
    return {
      key: `u1/${kind}/${began}/${charged}`,
      kind,
      ...times,
      ...(plan === undefined ? {} : { plan, instance: 0 }),
      ...(gb === undefined ? {} : { gb }),
      price,
      amount: amount ?? runAmount(price, gb ?? 1),
    };
  });
  await recordPlanCharges(server.ledger, [{ ...project, until: new Date(), charges }]);
}

// Shows: docs/billing.md#invoices: Every charge of more than 0 from the first cycle with invoices on is on one invoice
// Shows: docs/billing.md#invoices: A credit is on an invoice where its term is
// Shows: docs/billing.md#invoices: A line
// Shows: docs/billing.md#invoices: Whole cents
// Shows: docs/billing.md#invoices: makes an invoice of 0, and is left for the next one
// Shows: docs/billing.md#taxes: It is rounded once, on the invoice, to the nearest cent, half a cent up
test.each(invoiceExamples.map((example) => [example.example, example] as const))(
  "%s: the invoices that the page has",
  async (_, { taxes = [], before = [], cycles }) => {
    await beginInvoicing(server.ledger, new Date(`${cycles[0]?.cycle}-01T00:00:00Z`));
    await record("", before);
    const terms = { issuer: "", dueDays: 14, taxes: { default: taxes, countries: {} } };
    for (const { cycle, charges, late = [], invoice: written } of cycles) {
      await record(cycle, charges);
      await settleCycle(server.ledger, new Date(`${cycle}-01T00:00:00Z`));
      const number = await issueInvoice(
        server.ledger,
        { organizationId: "acme", cycle: `${cycle}-01` },
        terms,
      );
      await record(cycle, late);
      const invoice = await findInvoice(server.ledger, number ?? "");
      if (!invoice) {
        throw new Error(`no invoice of ${cycle}`);
      }
      const lines = await listInvoiceLines(server.ledger, invoice, { after: 0, limit: 100 });
      expect({
        lines: lines.map(({ projectId, kind, plan, quantity, unitPrice, amount }) =>
          [
            projectId,
            kind,
            ...(plan === undefined ? [] : [plan]),
            quantity,
            "x",
            unitPrice,
            "=",
            amount,
          ].join(" "),
        ),
        carried_in: invoice.carryIn,
        net: Number(invoice.netCents),
        taxes: invoice.taxes.map(({ cents }) => Number(cents)),
        total: Number(invoice.totalCents),
        carried_out: invoice.carryOut,
      }).toEqual({ taxes: [], total: written.net, ...written });
    }
  },
);
