import { spawn } from "node:child_process";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { parse } from "yaml";
import { jobSpec } from "../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../test/kit/api-server/real-harness.ts";
import { CHANNEL, frame, SUBPROTOCOL } from "./core/exec-frames.ts";

/** The program as a process of its own, over a real API server, kube-apiserver and PostgreSQL. No operator runs. */

let harness: RealHarness;
let folder: string;
let url: string;
let key: string;
let organizationId: string;

beforeAll(async () => {
  harness = await startRealHarness();
  url = await harness.app.listen({ port: 0, host: "127.0.0.1" });
  folder = await mkdtemp(join(tmpdir(), "slipway-cli-"));
  const { id } = await harness.organization();
  organizationId = id;
  const grants = ["* on organization:*", "* on project:*", "project.exec on project:*"];
  key = harness.key(id, ...grants)["x-api-key"] ?? "";
  await slipway(["login", "--url", url], { input: key });
});
afterAll(async () => {
  await harness?.close();
  await rm(folder, { recursive: true, force: true });
});

/** Runs the program with the profile that was logged in to. */
function slipway(
  args: string[],
  { input = "", environment = {} }: { input?: string; environment?: object } = {},
) {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, "config"),
    ...environment,
  };
  const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), ...args], { env });
  let [out, err] = ["", ""];
  child.stdout.on("data", (data) => {
    out += data;
  });
  child.stderr.on("data", (data) => {
    err += data;
  });
  child.stdin.end(input);
  return new Promise<{ exitCode: number | null; out: string; err: string }>((resolve) => {
    child.once("close", (exitCode) => resolve({ exitCode, out, err }));
  });
}

describe("login", () => {
  // Shows: docs/cli.md#commands: `slipway login`
  it("saves a key that the server takes, for its owner alone", async () => {
    const file = join(folder, "config/slipway/profiles.json");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const wrong = await slipway(["login", "--url", url], { input: "slw_wrong" });
    expect(wrong).toMatchObject({ exitCode: 1, err: expect.stringContaining("CREDENTIAL_INVALID") });
    expect(await slipway(["projects"])).toMatchObject({ exitCode: 0 });
  });

  // Shows: docs/cli.md#commands: `slipway doctor`
  it("is checked by doctor, whose exit code is the result", async () => {
    const good = await slipway(["doctor", "-o", "json"]);
    expect(JSON.parse(good.out)).toMatchObject([
      { check: "profiles", result: "ok" },
      { check: "address", result: "ok" },
      { check: "server", result: "ok" },
      { check: "credential", result: "ok" },
    ]);
    expect(good.exitCode).toBe(0);
    const bad = await slipway(["doctor"], { environment: { SLIPWAY_URL: "http://127.0.0.1:1" } });
    expect(bad).toMatchObject({ exitCode: 1, out: expect.stringContaining("the server does not answer") });
  });
});

describe("a project", () => {
  // Shows: docs/cli.md#commands: `slipway create`
  // Shows: docs/cli.md#commands: `slipway env list`
  // Shows: docs/cli.md#commands: `slipway env set`
  // Shows: docs/cli.md#commands: `slipway env unset`
  // Shows: docs/cli.md#commands: `slipway env import`
  it("is created, listed in three formats, and has its variables changed", async () => {
    const image = ["--image", "registry.example.com/shop:1", "--plan", "basic", "--env", "A=1"];
    const created = await slipway(["create", "shop-front", ...image, "-o", "json"]);
    expect(created).toMatchObject({ exitCode: 0 });
    const { project_id: id } = JSON.parse(created.out) as { project_id: string };

    const table = (await slipway(["projects"])).out;
    expect(table).toMatch(/^ID +NAME +TYPE +PLAN +STATUS\n/);
    expect(table).toContain(`${id}  shop-front  http  basic`);
    expect(table).not.toContain("\u001b");
    const listed = [{ id, name: "shop-front", type_project: "http", plan: "basic" }];
    expect(JSON.parse((await slipway(["projects", "-o", "json"])).out)).toMatchObject(listed);
    expect(parse((await slipway(["projects", "-o", "yaml"])).out)).toMatchObject(listed);

    expect(await slipway(["env", "set", "shop-front", "B=2", "C=x=y"])).toMatchObject({ exitCode: 0 });
    await writeFile(join(folder, ".env"), "# of tests\nexport D='4 5'\nA=0\n");
    expect(await slipway(["env", "import", id, join(folder, ".env")])).toMatchObject({ exitCode: 0 });
    expect(await slipway(["env", "unset", id, "B"])).toMatchObject({ exitCode: 0 });
    expect(JSON.parse((await slipway(["env", "list", id, "-o", "json"])).out)).toEqual([
      { name: "A", value: "0" },
      { name: "C", value: "x=y" },
      { name: "D", value: "4 5" },
    ]);
    expect((await slipway(["env", "set", id, "A=0"])).err).toContain("no changes");
  });

  // Shows: docs/cli.md#commands: `slipway scale`
  it("has more instances and another plan, up to what plans have", async () => {
    const scaled = await slipway(["scale", "shop-front", "2", "--plan", "premium", "-o", "json"]);
    expect(scaled).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(scaled.out)).toMatchObject({ plan: "premium", instances: 2 });
    const beyond = await slipway(["scale", "shop-front", "99"]);
    expect(beyond).toMatchObject({ exitCode: 1, err: expect.stringContaining("VALIDATION_FAILED") });
  });

  // Shows: docs/cli.md#commands: `slipway logs`
  it("has the log of no instance, and a foreign one none at all", async () => {
    expect(await slipway(["logs", "shop-front"])).toMatchObject({ exitCode: 0, out: "" });
    expect(await slipway(["logs", "absent-project"])).toMatchObject({ exitCode: 1, out: "" });
  });

  it("is deployed until the time is over, which is a failure", async () => {
    const deployed = await slipway([
      "deploy",
      "shop-front",
      "--image",
      "registry.example.com/shop:2",
      "--timeout",
      "1",
    ]);
    expect(deployed).toMatchObject({ exitCode: 1, err: expect.stringContaining("has not ended in time") });
    const commit = await slipway(["deploy", "shop-front"]);
    expect(commit).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("deploy an image with --image"),
    });
  });

  it("has failures of its type and its state", async () => {
    await harness.project(organizationId, "pnightly", jobSpec);
    expect(await slipway(["run", "shop-front", "--", "true"])).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("PROJECT_NOT_DEPLOYED"),
    });
    expect(await slipway(["db", "connect", "shop-front"])).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("PROJECT_TYPE_MISMATCH"),
    });
    expect(await slipway(["rollback", "shop-front", "--yes"])).toMatchObject({ exitCode: 1 });
    expect(JSON.parse((await slipway(["jobs", "list", "pnightly", "-o", "json"])).out)).toEqual([]);
    expect(await slipway(["usage"])).toMatchObject({ exitCode: 0, err: expect.stringContaining("0.00 BRL") });
    expect(await slipway(["invoices"])).toMatchObject({ exitCode: 0 });
    const denied = await slipway(["exec", "shop-front", "--instance", "shop-1", "--", "sh"]);
    expect(denied).toMatchObject({ exitCode: 1, err: expect.stringContaining("INSTANCE_NOT_FOUND") });
  });
});

describe("exec", () => {
  // Shows: docs/cli.md#commands: `slipway exec`
  it("passes input and outputs, and exits with the command's own code", async () => {
    const { server, address } = await startInstance();
    const environment = { SLIPWAY_URL: address, SLIPWAY_API_KEY: "key" };
    const result = await slipway(["exec", "pshop", "--", "cat"], { input: "héllo", environment });
    server.closeAllConnections();
    server.close();
    expect(result).toEqual({ exitCode: 7, out: "héllo", err: "to stderr" });
  });

  /** A server whose instance answers its input, then ends with 7. */
  async function startInstance() {
    const server = createServer((request, response) => {
      const isLogs = request.url?.endsWith("/logs");
      const body = isLogs
        ? { data: [], instances: ["pshop-1"] }
        : { data: { id: "pshop", name: "shop-front" } };
      response
        .setHeader("content-type", "application/json")
        .end(JSON.stringify({ status: "success", ...body }));
    });
    const sockets = new WebSocketServer({ server, handleProtocols: () => SUBPROTOCOL });
    sockets.on("connection", (socket) => {
      socket.on("message", (message: Buffer) => {
        if (message[0] === CHANNEL.input) {
          socket.send(frame(CHANNEL.output, message.subarray(1)));
          return;
        }
        const causes = [{ reason: "ExitCode", message: "7" }];
        socket.send(frame(CHANNEL.error, "to stderr"));
        socket.send(frame(CHANNEL.status, JSON.stringify({ status: "Failure", details: { causes } })));
        socket.close(1000, "EXEC_EXITED");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { server, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  }
});

describe("up", () => {
  const file = (change = "") => `
projects:
  up-front:
    plan: premium
    config:
      image: registry.example.com/front:1${change}
      port: 8080
      envs:
        API: \${project:up-stock.internal_url}/v2
        LEVEL: debug
  up-stock:
    plan: premium
    description: Counts what is left
    config: { image: registry.example.com/stock:1, exposure: private, port: 80 }
`;

  // Shows: docs/cli.md#commands: `slipway up`
  it("creates what a file describes in its order, then finds no changes, then changes what differs", async () => {
    const path = join(folder, "shop.yaml");
    await writeFile(path, file());
    expect(await slipway(["up", path])).toMatchObject({ exitCode: 1, err: expect.stringContaining("--yes") });
    const first = await slipway(["up", path, "--yes"]);
    expect(first).toMatchObject({ exitCode: 0, err: "up-stock: created\nup-front: created\n" });
    expect(first.out).toMatch(/up-stock +create/);

    expect(await slipway(["up", path, "--yes"])).toEqual({ exitCode: 0, out: "", err: "no changes\n" });

    await writeFile(
      path,
      file("0").replace("LEVEL: debug", "LEVEL: secret-value").replace("private,", "private, instances: 2,"),
    );
    const dry = await slipway(["up", path, "--dry-run", "-o", "json"]);
    expect(dry.exitCode).toBe(1);
    expect(dry.out).not.toContain("secret-value");
    expect(JSON.parse(dry.out)).toEqual([
      { project: "up-stock", action: "change", field: "instances", from: "1", to: "2" },
      {
        project: "up-front",
        action: "change",
        field: "image",
        from: "registry.example.com/front:1",
        to: "registry.example.com/front:10",
      },
      {
        project: "up-front",
        action: "change",
        field: "variable LEVEL",
        from: "a value",
        to: "another value",
      },
    ]);
    expect(await slipway(["up", path, "--yes"])).toMatchObject({ exitCode: 0 });
    expect((await slipway(["up", path, "--yes"])).err).toBe("no changes\n");
  });

  it("refuses what no call changes", async () => {
    const path = join(folder, "port.yaml");
    await writeFile(path, "projects: { up-stock: { config: { port: 81 } } }");
    expect(await slipway(["up", path, "--yes"])).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("port of up-stock is 80"),
    });
  });
});

describe("the start", () => {
  it("loads no command but the one that is called, and none of the packages that few need", async () => {
    const printer = `import { registerHooks } from "node:module"; registerHooks({ load(url, context, next) { process.stderr.write("loaded " + url + "\\n"); return next(url, context); } });`;
    const hook = `data:text/javascript,${encodeURIComponent(printer)}`;
    const { err } = await slipway(["completion", "--help"], {
      environment: { NODE_OPTIONS: `--import=${hook}` },
    });
    const loaded = err.split("\n").filter((line) => line.startsWith("loaded "));
    expect(loaded.some((line) => line.endsWith("/commands/completion.ts"))).toBe(true);
    expect(
      loaded.filter((line) => /\/commands\/(?!index|completion)|node_modules\/(yaml|ws)\//.test(line)),
    ).toEqual([]);
  });
});
