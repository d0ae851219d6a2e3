import { readFile } from "node:fs/promises";
import { CliError, type CommandDefinition, type Invocation, USAGE_EXIT } from "../core/command.ts";
import { parseAssignment, parseDotenv, type Variable, withVariables } from "../core/dotenv.ts";
import { findProject } from "../core/project.ts";

const project = { name: "<project>", description: "id or name" };

const readEnvs = async (call: Invocation, id: string): Promise<Variable[]> => {
  const { data } = await call.slipway().GET("/v1/project/{id}/envs", { params: { path: { id } } });
  return data.map(({ name, value }) => ({ name, value }));
};

/** Writes the variables that a change leads to; nothing where it leads to the same. */
async function change(call: Invocation, to: (all: readonly Variable[]) => Variable[]): Promise<number> {
  const { id } = await findProject(call.slipway(), call.args[0] ?? "");
  const before = await readEnvs(call, id);
  const after = to(before);
  if (JSON.stringify(before) === JSON.stringify(after)) {
    call.output.note("no changes");
    return 0;
  }
  const body = { envs: after };
  const { message } = await call.slipway().PATCH("/v1/project/{id}/envs", { params: { path: { id } }, body });
  call.output.note(message);
  return 0;
}

/** @throws CliError for what is no variable, without its value */
function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new CliError((error as Error).message, USAGE_EXIT);
  }
}

export const env: CommandDefinition = {
  name: "env",
  summary: "Read and change variables",
  subcommands: [
    {
      name: "list",
      summary: "Print a project's variables, in clear text",
      args: [project],
      run: async (call) => {
        const { id } = await findProject(call.slipway(), call.args[0] ?? "");
        const rows = await readEnvs(call, id);
        await call.output.list(rows, { name: (row) => row.name, value: (row) => row.value });
        return 0;
      },
    },
    {
      name: "set",
      summary: "Set variables, and keep all others",
      args: [project, { name: "<variables...>", description: "NAME=value" }],
      run: async (call) => {
        const set = parsed(() => call.args.slice(1).map(parseAssignment));
        return change(call, (all) => withVariables(all, set));
      },
    },
    {
      name: "unset",
      summary: "Remove variables",
      args: [project, { name: "<names...>", description: "names of variables" }],
      run: async (call) => {
        const names = new Set(call.args.slice(1));
        return change(call, (all) => all.filter(({ name }) => !names.has(name)));
      },
    },
    {
      name: "import",
      summary: "Set the variables of a file such as `.env`, and keep all others",
      args: [project, { name: "<file>", description: "the file, or - for standard input" }],
      run: async (call) => {
        const [, file = "-"] = call.args;
        const text = file === "-" ? await call.input.readAll() : await readFile(file, "utf8");
        const set = parsed(() => parseDotenv(text));
        return change(call, (all) => withVariables(all, set));
      },
    },
  ],
};
