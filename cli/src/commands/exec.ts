import { CliError, type CommandDefinition, textOf } from "../core/command.ts";
import { execUrl } from "../core/exec-frames.ts";
import { findProject } from "../core/project.ts";

export const exec: CommandDefinition = {
  name: "exec",
  summary: "Run a command in an instance",
  details:
    "Beside the application, such as a shell: `slipway exec shop-front -- sh`. The key needs `project.exec`. The exit code is the command's own.",
  args: [
    { name: "<project>", description: "id or name" },
    { name: "<command...>", description: "the command's words, after --" },
  ],
  options: [{ flags: "--instance <name>", description: "which one; the first without it" }],
  run: async (call) => {
    const slipway = call.slipway();
    const { id } = await findProject(slipway, call.args[0] ?? "");
    const instance = textOf(call, "instance") ?? (await firstInstance(call, id));
    const { url = "", apiKey = "" } = call.settings;
    const { runSession } = await import("../core/exec-session.ts");
    const query = { command: call.args.slice(1), tty: call.input.isTerminal };
    return runSession(execUrl(url, id, instance, query), apiKey, query.tty);
  },
};

async function firstInstance(call: Parameters<NonNullable<CommandDefinition["run"]>>[0], id: string) {
  const { instances } = await call.slipway().GET("/v1/project/{id}/logs", { params: { path: { id } } });
  const [first] = instances;
  if (first === undefined) {
    throw new CliError("the project has no instance: `slipway projects PROJECT` shows its state");
  }
  return first;
}
