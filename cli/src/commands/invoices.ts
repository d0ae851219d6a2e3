import { eachInvoice } from "@slipway/sdk";
import type { CommandDefinition } from "../core/command.ts";
import { formatCents } from "../core/money.ts";

export const invoices: CommandDefinition = {
  name: "invoices",
  summary: "List invoices, or print one",
  args: [{ name: "[invoice]", description: "number of an invoice" }],
  run: async (call) => {
    const slipway = call.slipway();
    const [invoiceId] = call.args;
    if (invoiceId !== undefined) {
      const params = { path: { invoiceId } };
      const answer = await slipway.GET("/v1/organization/invoices/{invoiceId}", { params });
      if (typeof answer === "string") {
        throw new Error("the server answers JSON with a text");
      }
      await call.output.object(answer.data);
      return 0;
    }
    const rows: {
      id: string;
      status: string;
      currency: string;
      due_at: string;
      total_amount: number;
      open_amount: number;
    }[] = [];
    for await (const invoice of eachInvoice(slipway)) {
      rows.push(invoice);
    }
    await call.output.list(rows, {
      invoice: ({ id }) => id,
      status: ({ status }) => status,
      due: (row) => row.due_at.slice(0, 10),
      total: (row) => formatCents(row.total_amount, row.currency),
      open: (row) => formatCents(row.open_amount, row.currency),
    });
    return 0;
  },
};
