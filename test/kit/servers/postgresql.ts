import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { freePorts } from "../../../hack/lib/ports.ts";

const DEBIAN_ROOT = "/usr/lib/postgresql";
const START_LIMIT_MS = 30_000;

export interface TestPostgres {
  /** Connection URL of an empty database. */
  url: string;
  /** Port on 127.0.0.1. */
  port: number;
  /** Ends the server as a crash would (SIGQUIT), keeping its data. */
  crash(): Promise<void>;
  /** Starts it again on the same port with the same data. */
  restart(): Promise<void>;
  /** Ends the server and removes its data. */
  stop(): Promise<void>;
}

export interface TestPostgresOptions {
  /** Whether a commit is on the disk when it is acknowledged: for measurements. PostgreSQL's own settings then. */
  durable?: boolean;
}

/**
 * Starts a real PostgreSQL on a random port of 127.0.0.1, in a temporary folder, without durability unless it is requested.
 * Needs Debian's `postgresql` package; run by root it runs as the user `postgres`, or else `nobody`.
 *
 * @throws when the tools are missing or the server does not answer in time
 */
export async function startPostgres({ durable = false }: TestPostgresOptions = {}): Promise<TestPostgres> {
  const bin = newestTools();
  const account = unprivilegedAccount();
  const directory = mkdtempSync(join(tmpdir(), "slipway-pg-"));
  if (account) {
    chownSync(directory, account.uid, account.gid);
  }
  const data = join(directory, "data");
  const init = ["-D", data, "-U", "slipway", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
  await run(join(bin, "initdb"), init, directory, account);

  const [port = 0] = await freePorts(1);
  const url = `postgresql://slipway@127.0.0.1:${port}/slipway`;
  const settings = [
    "listen_addresses=127.0.0.1",
    `port=${port}`,
    `unix_socket_directories=${directory}`,
    ...(durable ? [] : ["fsync=off", "full_page_writes=off"]),
    "max_connections=50",
  ];
  const start = () => {
    const args = ["-D", data, ...settings.flatMap((setting) => ["-c", setting])];
    return spawn(join(bin, "postgres"), args, { cwd: directory, stdio: "ignore", ...account });
  };
  let server = start();
  const end = async (signal: NodeJS.Signals) => {
    if (server.exitCode !== null || server.signalCode !== null) {
      return;
    }
    server.kill(signal);
    await once(server, "exit");
  };
  await createDatabase(port);
  return {
    url,
    port,
    crash: () => end("SIGQUIT"),
    restart: async () => {
      server = start();
      await createDatabase(port);
    },
    stop: async () => {
      await end("SIGINT");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The folder of the newest programs of PostgreSQL. @throws Error without any */
export function newestTools(): string {
  const versions = existsSync(DEBIAN_ROOT)
    ? readdirSync(DEBIAN_ROOT).map(Number).filter(Number.isFinite)
    : [];
  const newest = versions.sort((a, b) => b - a)[0];
  if (newest === undefined) {
    throw new Error("PostgreSQL's server tools are missing: apt-get install postgresql");
  }
  return join(DEBIAN_ROOT, String(newest), "bin");
}

/** PostgreSQL refuses to run as root. */
export function unprivilegedAccount(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) {
    return undefined;
  }
  const accounts = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const found = ["postgres", "nobody"]
    .map((name) => accounts.find((fields) => fields[0] === name))
    .find(Boolean);
  if (!found) {
    throw new Error("no user postgres or nobody to run PostgreSQL as");
  }
  return { uid: Number(found[2]), gid: Number(found[3]) };
}

async function run(
  command: string,
  args: string[],
  cwd: string,
  account: { uid: number; gid: number } | undefined,
): Promise<void> {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "ignore", "pipe"], ...account });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) {
    throw new Error(`${command} failed: ${stderr}`);
  }
}

/** Waits for the server, then makes the database unless it is there. */
async function createDatabase(port: number): Promise<void> {
  const deadline = performance.now() + START_LIMIT_MS;
  for (;;) {
    const client = new pg.Client({ connectionString: `postgresql://slipway@127.0.0.1:${port}/postgres` });
    try {
      await client.connect();
      const found = await client.query("select 1 from pg_database where datname = 'slipway'");
      if (found.rowCount === 0) {
        await client.query("create database slipway");
      }
      return;
    } catch (error) {
      if (performance.now() > deadline) {
        throw error;
      }
      await sleep(50);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}
