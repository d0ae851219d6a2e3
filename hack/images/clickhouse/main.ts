/** Starts the server: `clickhouse-server [--config-file=…]`, with the folders beside that file. */
import { mkdir, readdir, readFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { dirname, join } from "node:path";
import { Access } from "./access.ts";
import { type Config, readConfig } from "./config.ts";
import { Connections } from "./connections.ts";
import { engineMemory, memoryLimit } from "./memory.ts";
import { loadNative } from "./native.ts";
import { handler } from "./server.ts";

/** How long statements may continue after a signal to stop. */
const GRACE_MS = 25_000;
const SIGNALS = ["SIGTERM", "SIGINT"] as const;
const CERTIFICATE_CHECK_MS = 10_000;

const log = (msg: string, fields: Record<string, unknown> = {}): void => {
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), msg, ...fields })}\n`);
};

async function readConfiguration(args: string[]): Promise<Config> {
  const named = args.map((arg) => /^--config-file=(.+)$/.exec(arg)?.[1]).find((path) => path !== undefined);
  const file = named ?? "/etc/clickhouse-server/config.yaml";
  const folders = ["config.d", "users.d"].map((name) => join(dirname(file), name));
  const found = await Promise.all(
    folders.map(async (folder) => (await list(folder)).map((name) => join(folder, name))),
  );
  const main = (await list(dirname(file)))
    .map((name) => join(dirname(file), name))
    .filter((path) => path === file);
  const files = [...main, ...found.flat()].filter((path) => /\.ya?ml$/.test(path));
  return readConfig(await Promise.all(files.map((path) => readFile(path, "utf8"))), process.env);
}

async function list(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") {
      return [];
    }
    throw error;
  });
  return names.sort();
}

async function readTls({ certificate, key }: { certificate: string; key: string }) {
  const [cert, privateKey] = await Promise.all([readFile(certificate), readFile(key)]);
  return { cert, key: privateKey, minVersion: "TLSv1.2" as const };
}

/** A server with TLS that takes over its certificate when the files become other ones. */
async function tlsServer(
  files: { certificate: string; key: string },
  listener: RequestListener,
): Promise<TlsServer> {
  let now = await readTls(files);
  const server = createTlsServer(now, listener);
  const check = async (): Promise<void> => {
    const next = await readTls(files);
    if (next.cert.equals(now.cert) && next.key.equals(now.key)) {
      return;
    }
    server.setSecureContext(next);
    now = next;
    log("certificate renewed");
  };
  setInterval(() => {
    check().catch((error: Error) => log("certificate not readable", { error: error.message }));
  }, CERTIFICATE_CHECK_MS).unref();
  return server;
}

function listen(server: Server, port: number): Promise<void> {
  // A client may think about its next request for longer than Node would wait for it.
  server.keepAliveTimeout = 30_000;
  server.requestTimeout = 0;
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, resolve);
  });
}

/**
 * Ends the process without what the engine does at a process's exit, which crashes or hangs now and then while threads of its
 * own run still: a process without the engine takes its place and exits.
 */
function exit(code: number): never {
  process.execve?.(process.execPath, [process.execPath, "--eval", `process.exit(${code})`], {});
  process.exit(code);
}

async function main(): Promise<void> {
  // The first process of a container ends by no signal that it does not handle.
  const leave = (): never => process.exit(0);
  for (const signal of SIGNALS) {
    process.once(signal, leave);
  }
  const config = await readConfiguration(process.argv.slice(2));
  const path = join(config.path, "chdb");
  await mkdir(path, { recursive: true });
  const native = loadNative();
  const memory = config.maxMemory ?? engineMemory(await memoryLimit());
  const connections = new Connections(native, {
    path,
    limit: config.maxConcurrentQueries,
    // To the engine all statements are one user's.
    settings: memory === undefined ? {} : { max_memory_usage_for_user: String(memory) },
  });
  const access = await Access.open(config.users, join(config.path, "access/users.json"));
  const onError = (error: Error): void => log("request failed", { error: error.message });
  // The engine cannot be started again within a process.
  const onBroken = (error: Error): void => fail(error);
  const listener = handler({ native, connections, access, onError, onBroken });
  const servers: Server[] = [];
  if (config.httpsPort !== undefined && config.tls) {
    const server = await tlsServer(config.tls, listener);
    await listen(server, config.httpsPort);
    servers.push(server);
  }
  // The last to open: who is answered a ping here finds the other port open.
  if (config.httpPort !== undefined) {
    const server = createServer(listener);
    await listen(server, config.httpPort);
    servers.push(server);
  }
  log("ready", { http: config.httpPort, https: config.httpsPort, memory });

  const stop = async (signal: string): Promise<void> => {
    log("stopping", { signal });
    setTimeout(() => exit(1), GRACE_MS).unref();
    const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const server of servers) {
      server.closeIdleConnections();
    }
    await Promise.all(closed);
    connections.close();
    log("stopped");
    exit(0);
  };
  for (const signal of SIGNALS) {
    process.off(signal, leave);
    process.once(signal, () => stop(signal).catch(fail));
  }
}

function fail(error: Error): never {
  log("cannot go on", { error: error.message });
  exit(1);
}

main().catch(fail);
