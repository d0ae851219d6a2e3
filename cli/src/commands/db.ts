import { CliError, type CommandDefinition } from "../core/command.ts";
import { clientCommand, shown } from "../core/database-clients.ts";
import { findProject } from "../core/project.ts";

export const db: CommandDefinition = {
  name: "db",
  summary: "Use databases",
  subcommands: [
    {
      name: "connect",
      summary: "Connect with psql, mariadb, valkey-cli or clickhouse",
      details:
        "Prints the command, and runs it where the client is installed. The password is `SLIPWAY_DB_PASSWORD`, which creation and renewal of credentials answer once; without it the client asks.",
      args: [{ name: "<project>", description: "id or name" }],
      options: [
        { flags: "--inside", description: "by the address within the cluster" },
        { flags: "--print", description: "print the command alone" },
      ],
      run: async (call) => {
        const slipway = call.slipway();
        const { id, type_project: type } = await findProject(slipway, call.args[0] ?? "");
        const { data } = await slipway.GET("/v1/project/{id}/database/connection", {
          params: { path: { id } },
        });
        const address = { ...data.connection, ...(call.options.inside === true ? data.inside : {}) };
        const { host, port, username, database } = address;
        if (host === undefined || port === undefined) {
          throw new CliError("the database has no address yet: try again once it runs, or with --inside");
        }
        const password = call.environment.SLIPWAY_DB_PASSWORD;
        const client = clientCommand(type, { host, port, username, database }, password);
        if (call.output.format !== "table") {
          await call.output.object({ command: shown(client), host, port, username, database });
          return 0;
        }
        call.output.line(shown(client));
        if (call.options.print === true) {
          return 0;
        }
        const exitCode = await call.spawn(client.program, client.args, client.environment);
        if (exitCode === undefined) {
          call.output.note(`${client.program} is not installed: install it, or run the command where it is`);
          return 0;
        }
        return exitCode;
      },
    },
  ],
};
