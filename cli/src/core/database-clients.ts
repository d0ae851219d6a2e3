import { CliError } from "./command.ts";

/** How clients of databases connect, with TLS. Pure. */

export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly username?: string;
  readonly database?: string;
}
export interface ClientCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** The password is here and in no argument, which every user of the machine could read. */
  readonly environment: Readonly<Record<string, string>>;
}

/** @throws CliError for a project that is no database */
export function clientCommand(type: string, address: DatabaseAddress, password?: string): ClientCommand {
  const { host, username = "app", database = "app" } = address;
  const port = String(address.port);
  const secret = (name: string) => (password === undefined ? {} : { [name]: password });
  switch (type) {
    case "postgresql":
      return {
        program: "psql",
        args: [`host=${host} port=${port} user=${username} dbname=${database} sslmode=require`],
        environment: secret("PGPASSWORD"),
      };
    case "mariadb":
      return {
        program: "mariadb",
        args: [
          "--host",
          host,
          "--port",
          port,
          "--user",
          username,
          "--ssl",
          ...(password === undefined ? ["--password"] : []),
          database,
        ],
        environment: secret("MYSQL_PWD"),
      };
    case "valkey":
      return {
        program: "valkey-cli",
        args: [
          "-h",
          host,
          "-p",
          port,
          "--tls",
          "--user",
          username,
          ...(password === undefined ? ["--askpass"] : []),
        ],
        environment: secret("REDISCLI_AUTH"),
      };
    case "clickhouse":
      return {
        program: "clickhouse",
        args: [
          "client",
          "--host",
          host,
          "--port",
          port,
          "--secure",
          "--user",
          username,
          "--database",
          database,
          ...(password === undefined ? ["--ask-password"] : []),
        ],
        environment: secret("CLICKHOUSE_PASSWORD"),
      };
    default:
      throw new CliError(
        `a project of type ${type} is no database: \`slipway exec\` opens a shell in an instance`,
      );
  }
}

/** The command as a shell takes it, without the password. */
export const shown = ({ program, args }: ClientCommand): string =>
  [
    program,
    ...args.map((arg) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`)),
  ].join(" ");
