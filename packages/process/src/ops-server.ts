import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";

/** A check by name; it throws, rejects or answers false when all is not well. */
export type Check = () => boolean | Promise<boolean>;

export interface OpsServerOptions {
  registry: Registry;
  /** 0 picks a free port. */
  port: number;
  host?: string;
  /** `/healthz` and `/livez`: whether the process should be restarted. */
  health: ReadonlyMap<string, Check>;
  /** `/readyz`: whether it does its work. */
  ready: ReadonlyMap<string, Check>;
  /** Further paths, each with what it answers as JSON. */
  json?: ReadonlyMap<string, () => unknown>;
}

/**
 * The port for the platform alone: `/metrics`, `/healthz`, `/livez` and `/readyz`, each with a line for every check, and the
 * paths of `json`.
 * Resolves once it listens.
 * @throws Error when the port is taken
 */
export async function startOpsServer(
  options: OpsServerOptions,
): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    void answer(request.url ?? "/", response, options).catch(() => response.destroy());
  });
  await listen(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(url: string, response: ServerResponse, options: OpsServerOptions): Promise<void> {
  const [path = "/"] = url.split("?");
  const json = options.json?.get(path);
  if (json) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(json()));
    return;
  }
  switch (path) {
    case "/metrics":
      response.writeHead(200, { "content-type": options.registry.contentType });
      response.end(await options.registry.metrics());
      return;
    case "/healthz":
    case "/livez":
      return await answerChecks(response, options.health);
    case "/readyz":
      return await answerChecks(response, options.ready);
    default:
      response.writeHead(404).end();
  }
}

async function answerChecks(response: ServerResponse, checks: ReadonlyMap<string, Check>): Promise<void> {
  const lines: string[] = [];
  let ok = true;
  for (const [name, check] of checks) {
    const passed = await passes(check);
    ok &&= passed;
    lines.push(`${passed ? "[+]" : "[-]"}${name} ${passed ? "ok" : "failed"}`);
  }
  response.writeHead(ok ? 200 : 503, { "content-type": "text/plain" });
  response.end(`${[...lines, ok ? "ok" : "failed"].join("\n")}\n`);
}

async function passes(check: Check): Promise<boolean> {
  try {
    return await check();
  } catch {
    return false;
  }
}

function listen(server: Server, { port, host }: OpsServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host ?? "0.0.0.0", () => resolve());
  });
}
