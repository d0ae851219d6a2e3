import { type CommandDefinition, textOf } from "../core/command.ts";
import { formatCents } from "../core/money.ts";

export const usage: CommandDefinition = {
  name: "usage",
  summary: "Print what a billing cycle costs",
  options: [{ flags: "--cycle <month>", description: "for example 2026-11; the current one without it" }],
  run: async (call) => {
    const cycle = textOf(call, "cycle");
    const query = cycle === undefined ? {} : { cycle };
    const { data } = await call.slipway().GET("/v1/organization/usage", { params: { query } });
    if (call.output.format !== "table") {
      await call.output.object(data);
      return 0;
    }
    await call.output.list(data.projects, {
      project: (row) => row.name ?? row.project_id ?? "",
      amount: ({ amount }) => formatCents(amount, data.currency),
    });
    call.output.note(
      `total since ${data.cycle_started_at.slice(0, 10)}: ${formatCents(data.amount, data.currency)}`,
    );
    return 0;
  },
};
