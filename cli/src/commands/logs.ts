import { followLogs } from "@slipway/sdk";
import { type CommandDefinition, textOf } from "../core/command.ts";
import { findProject } from "../core/project.ts";
import { printable } from "../core/table.ts";

export const logs: CommandDefinition = {
  name: "logs",
  summary: "Print what instances write",
  details: "With `-o json` each followed line is an object on a line of its own.",
  args: [{ name: "<project>", description: "id or name" }],
  options: [
    { flags: "-f, --follow", description: "go on with lines as they are written" },
    { flags: "--instance <name>", description: "lines of one instance" },
  ],
  run: async (call) => {
    const slipway = call.slipway();
    const { id } = await findProject(slipway, call.args[0] ?? "");
    const instance = textOf(call, "instance");
    if (call.options.follow !== true) {
      const query = instance === undefined ? {} : { instance };
      const { data } = await slipway.GET("/v1/project/{id}/logs", { params: { path: { id }, query } });
      if (call.output.format === "table") {
        for (const line of data) {
          call.output.line(printable(line));
        }
      } else {
        await call.output.object(data);
      }
      return 0;
    }
    for await (const line of followLogs(slipway, id, { instance })) {
      const text = `${line.timestamp} ${line.instance} ${printable(line.message)}`;
      call.output.line(call.output.format === "table" ? text : JSON.stringify(line));
    }
    return 0;
  },
};
