import { eachProject, type operations } from "@slipway/sdk";
import { type CommandDefinition, textOf } from "../core/command.ts";
import { findProject } from "../core/project.ts";

type Query = NonNullable<operations["listProjects"]["parameters"]["query"]>;

export const projects: CommandDefinition = {
  name: "projects",
  summary: "List projects",
  details: "With a project, all of its fields.",
  args: [{ name: "[project]", description: "id or name" }],
  options: [
    { flags: "--type <type>", description: "http, worker, job, postgresql, mariadb, clickhouse or valkey" },
    { flags: "--search <text>", description: "in name or description" },
  ],
  run: async (call) => {
    const [name] = call.args;
    if (name !== undefined) {
      await call.output.object(await findProject(call.slipway(), name));
      return 0;
    }
    const query = { type: textOf(call, "type") as Query["type"], search: textOf(call, "search") };
    const rows: { id: string; name: string; type_project: string; plan: string; status: string }[] = [];
    for await (const project of eachProject(call.slipway(), query)) {
      rows.push(project);
    }
    await call.output.list(rows, {
      id: ({ id }) => id,
      name: (row) => row.name,
      type: (row) => row.type_project,
      plan: ({ plan }) => plan,
      status: ({ status }) => status,
    });
    return 0;
  },
};
