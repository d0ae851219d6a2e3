import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { runCli, VERSION } from "./run.ts";

/** The program in this process, over answers that a test gives. */

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-cli-"));
});
afterAll(() => rm(folder, { recursive: true }));

type Answers = Readonly<Record<string, unknown>>;
const project = {
  id: "pshop",
  name: "shop-front",
  type_project: "http",
  plan: "basic",
  payment_mode: "hourly",
};
const shop = {
  data: { ...project, instances: 1, domain: "shop.apps.example.com", custom_domains: ["shop.example.com"] },
};

/** Runs a call; `answers` are bodies of successes by method and path, or by turns a list of them. */
async function slipway(line: string[], answers: Answers = {}, environment: Record<string, string> = {}) {
  const requests: string[] = [];
  const spawned: string[] = [];
  let [out, err] = ["", ""];
  const turns = new Map<string, number>();
  let now = 0;
  const exitCode = await runCli(line, {
    environment: {
      HOME: folder,
      XDG_CONFIG_HOME: folder,
      SLIPWAY_URL: "https://api.example.com",
      SLIPWAY_API_KEY: "key",
      ...environment,
    },
    streams: {
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
    },
    isOutputTerminal: false,
    input: { isTerminal: false, readAll: async () => "A=1\n" },
    ask: async () => "n",
    spawn: async (command, args) => {
      spawned.push([command, ...args].join(" "));
      return command === "psql" ? 3 : undefined;
    },
    sleep: async (ms) => {
      now += ms;
    },
    now: () => now,
    fetch: async (request) => {
      const key = `${request.method} ${new URL(request.url).pathname.replace("/v1/", "")}`;
      const body = await request.text();
      requests.push(`${key}${body === "" ? "" : ` ${body}`}`);
      const all = { "GET project/pshop": shop, ...answers }[key];
      const turn = turns.get(key) ?? 0;
      turns.set(key, turn + 1);
      const answer = Array.isArray(all) ? all[Math.min(turn, all.length - 1)] : all;
      if (typeof answer === "string") {
        return new Response(answer, { headers: { "content-type": "text/event-stream" } });
      }
      const missing = { status: "failed", code: "PROJECT_NOT_FOUND", message: "project not found" };
      const status = answer === undefined ? 404 : 200;
      return Response.json(
        answer === undefined ? missing : { status: "success", message: "done", ...answer },
        { status },
      );
    },
  });
  return { exitCode, out, err, requests, spawned };
}
const writes = (requests: readonly string[]) => requests.filter((request) => !request.startsWith("GET"));
const deployments = (...all: [string, string][]) => ({
  data: all.map(([id, status]) => ({ id, status })),
  pagination: { total: all.length },
});
const history = "GET project/pshop/historic/deployments";

it("has the version of its package", () => {
  expect(VERSION).toBe(manifest.version);
});

describe("calls that no command has", () => {
  it("exit with 2 and say what there is", async () => {
    expect(await slipway(["nothing"])).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining("unknown command"),
    });
    expect(await slipway(["projects", "-o", "xml"])).toMatchObject({ exitCode: 2, requests: [] });
    expect(await slipway(["deploy"])).toMatchObject({ exitCode: 2 });
    expect(await slipway(["scale", "pshop", "many"])).toMatchObject({ exitCode: 2 });
    const help = await slipway([]);
    expect(help).toMatchObject({ exitCode: 0, out: expect.stringContaining("deploy") });
  });

  it("without settings say how to get them", async () => {
    const none = { SLIPWAY_URL: "", SLIPWAY_API_KEY: "" };
    expect(await slipway(["projects"], {}, none)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("slipway login"),
    });
  });
});

describe("projects", () => {
  // Shows: docs/cli.md#commands: `slipway projects`
  it("are found by id or by the only name, else named with their ids", async () => {
    const list = (...ids: string[]) => ({
      "GET project": {
        data: { projects: ids.map((id) => ({ ...project, id })), pagination: { total: ids.length } },
      },
    });
    expect((await slipway(["projects", "pshop", "-o", "json"])).out).toContain('"id": "pshop"');
    const one = await slipway(["projects", "shop-front", "-o", "yaml"], list("pshop"));
    expect(one.out).toContain("name: shop-front");
    const two = await slipway(["projects", "shop-front"], list("pshop", "pother"));
    expect(two).toMatchObject({ exitCode: 1, err: expect.stringContaining("pshop, pother") });
    expect((await slipway(["projects", "absent"], list())).err).toContain("there is no project");
    expect((await slipway(["projects"], list("pshop"))).out).toContain("pshop  shop-front  http  basic");
  });
});

describe("deploy", () => {
  const image = ["deploy", "pshop", "--image", "example.com/shop:2"];

  // Shows: docs/cli.md#commands: `slipway deploy`
  it("follows the deployment, and exits by its result", async () => {
    const with2 = (status: string) => ({
      "PATCH project/pshop/image": {},
      [history]: [
        deployments(["d1", "succeeded"]),
        deployments(["d1", "succeeded"]),
        deployments(["d2", "in_progress"]),
        deployments(["d2", status]),
      ],
    });
    expect(await slipway(image, with2("succeeded"))).toMatchObject({
      exitCode: 0,
      err: expect.stringContaining("d2: succeeded"),
    });
    expect(await slipway(image, with2("failed"))).toMatchObject({ exitCode: 1 });
    const endless = { "PATCH project/pshop/image": {}, [history]: deployments(["d1", "succeeded"]) };
    expect(await slipway([...image, "--timeout", "10"], endless)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("has not ended in time"),
    });
    expect(await slipway([...image, "--no-follow"], endless)).toMatchObject({ exitCode: 0 });
  });

  it("follows a build first, and reports why it has failed", async () => {
    const logs = "GET project/pshop/builds/b1/logs";
    const begun = { "POST project/pshop/deploy": { data: { build_id: "b1" } } };
    const line = 'id: 1\nevent: log\ndata: {"message":"added 68 packages"}\n\n';
    const succeeded = {
      ...begun,
      [logs]: `${line}event: end\ndata: {"status":"success"}\n\n`,
      [history]: [deployments(["d1", "succeeded"]), deployments(["d2", "succeeded"])],
    };
    const result = await slipway(["deploy", "pshop", "--commit", "a".repeat(40)], succeeded);
    expect(result).toMatchObject({ exitCode: 0, err: expect.stringContaining("added 68 packages") });
    expect(writes(result.requests)).toEqual([`POST project/pshop/deploy {"commit_sha":"${"a".repeat(40)}"}`]);
    const failed = {
      ...begun,
      [logs]: 'event: end\ndata: {"status":"failed"}\n\n',
      [history]: deployments(),
      "GET project/pshop/builds/b1": {
        data: { error_code: "BUILD_COMMAND_FAILED", error_message: "exit code 1" },
      },
    };
    expect(await slipway(["deploy", "pshop"], failed)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("BUILD_COMMAND_FAILED"),
    });
  });
});

describe("logs", () => {
  it("are followed until the project is deleted, a line or an object each", async () => {
    const line = { instance: "shop-1", timestamp: "2026-11-21T12:00:00Z", message: "\u001b[2Jready" };
    const answers = {
      "GET project/pshop/logs": `id: 1\nevent: log\ndata: ${JSON.stringify(line)}\n\nevent: end\ndata: {}\n\n`,
    };
    const followed = await slipway(["logs", "-f", "pshop"], answers);
    expect(followed).toMatchObject({ exitCode: 0, out: "2026-11-21T12:00:00Z shop-1 \\x1b[2Jready\n" });
    const objects = await slipway(["logs", "-f", "pshop", "-o", "json"], answers);
    expect(JSON.parse(objects.out)).toEqual(line);
  });
});

describe("runs", () => {
  // Shows: docs/cli.md#commands: `slipway run`
  it("exit with the command's own code, and print what it wrote", async () => {
    const answers = {
      "POST project/pshop/runs": { data: { run: { id: "r1" } } },
      "GET project/pshop/runs/r1": [
        { data: { run: { status: "running" } } },
        { data: { run: { status: "failed", exit_code: 7 } } },
      ],
      "GET project/pshop/runs/r1/logs": { data: { logs: "no such table\n" } },
    };
    const result = await slipway(["run", "pshop", "--", "node", "migrate.js", "--to=latest"], answers);
    expect(result).toMatchObject({ exitCode: 7, out: "no such table\n" });
    expect(writes(result.requests)[0]).toContain('["node","migrate.js","--to=latest"]');
  });

  // Shows: docs/cli.md#commands: `slipway jobs run`
  it("of jobs exit by their result", async () => {
    const answers = (status: string) => ({
      "POST project/pshop/job-runs": { data: { run: { id: "r1" } } },
      "GET project/pshop/job-runs/r1/logs": [
        { data: { run: { status: "running" }, logs: "" } },
        { data: { run: { status }, logs: "sent\n" } },
      ],
    });
    expect(await slipway(["jobs", "run", "pshop"], answers("succeeded"))).toMatchObject({
      exitCode: 0,
      out: "sent\n",
    });
    expect(await slipway(["jobs", "run", "pshop"], answers("failed"))).toMatchObject({ exitCode: 1 });
  });
});

describe("rollback", () => {
  // Shows: docs/cli.md#commands: `slipway rollback`
  it("returns to the last deployment that succeeded before the newest, once it is confirmed", async () => {
    const before = deployments(["d3", "succeeded"], ["d2", "failed"], ["d1", "succeeded"]);
    const answers = {
      [history]: [before, deployments(["d4", "succeeded"])],
      "POST project/pshop/rollback": {},
    };
    expect(await slipway(["rollback", "pshop"], answers)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("--yes"),
    });
    const result = await slipway(["rollback", "pshop", "--yes"], answers);
    expect(result.exitCode).toBe(0);
    expect(writes(result.requests)).toEqual(['POST project/pshop/rollback {"deployment_id":"d1"}']);
  });
});

describe("domains", () => {
  const patch = {
    "PATCH project/pshop/custom-domains": {
      custom_domains: [],
      custom_domain_setup: [
        {
          hostname: "b.example.com",
          status: "pending",
          dns_records: [{ type: "CNAME", name: "b.example.com", value: "edge.example.com" }],
        },
      ],
    },
  };

  // Shows: docs/cli.md#commands: `slipway domains list`
  // Shows: docs/cli.md#commands: `slipway domains add`
  // Shows: docs/cli.md#commands: `slipway domains remove`
  it("are listed, added with their DNS records, and removed", async () => {
    expect((await slipway(["domains", "list", "pshop"])).out).toMatch(
      /shop\.apps\.example\.com +default\nshop\.example\.com +custom/,
    );
    const added = await slipway(["domains", "add", "pshop", "b.example.com"], patch);
    expect(writes(added.requests)[0]).toContain('["shop.example.com","b.example.com"]');
    expect(added.out).toContain("edge.example.com");
    const removed = await slipway(["domains", "remove", "pshop", "shop.example.com", "--yes"], patch);
    expect(writes(removed.requests)[0]).toContain('{"custom_domains":[]}');
    expect(writes((await slipway(["domains", "add", "pshop", "shop.example.com"])).requests)).toEqual([]);
  });
});

describe("databases", () => {
  // Shows: docs/cli.md#commands: `slipway db connect`
  it("are connected to by the client that is installed, else its command is printed", async () => {
    const answers = (type: string) => ({
      "GET project/pshop": { data: { ...project, type_project: type } },
      "GET project/pshop/database/connection": {
        data: { connection: { host: "db.example.com", port: 31432, username: "app", database: "app" } },
      },
    });
    const psql = await slipway(["db", "connect", "pshop"], answers("postgresql"));
    expect(psql).toMatchObject({ exitCode: 3, out: expect.stringContaining("psql 'host=db.example.com") });
    const valkey = await slipway(["db", "connect", "pshop"], answers("valkey"));
    expect(valkey).toMatchObject({
      exitCode: 0,
      err: expect.stringContaining("valkey-cli is not installed"),
    });
    expect((await slipway(["db", "connect", "pshop", "--print"], answers("mariadb"))).spawned).toEqual([]);
  });
});

describe("money", () => {
  // Shows: docs/cli.md#commands: `slipway usage`
  // Shows: docs/cli.md#commands: `slipway invoices`
  it("is printed exactly", async () => {
    const usage = {
      "GET organization/usage": {
        data: {
          currency: "brl",
          cycle_started_at: "2026-11-01T00:00:00.000Z",
          amount: "2234.35",
          projects: [{ name: "Shop", amount: "72.5" }],
        },
      },
    };
    expect(await slipway(["usage"], usage)).toMatchObject({
      out: expect.stringContaining("0.725 BRL"),
      err: expect.stringContaining("22.3435 BRL"),
    });
    const invoice = {
      id: "2026-000042",
      status: "open",
      currency: "brl",
      due_at: "2026-11-16T00:12:00.000Z",
      total_amount: 2223,
      open_amount: 2223,
    };
    const invoices = {
      "GET organization/invoices": { data: { invoices: [invoice], pagination: { total: 1 } } },
      "GET organization/invoices/2026-000042": { data: invoice },
    };
    expect((await slipway(["invoices"], invoices)).out).toContain(
      "2026-000042  open    2026-11-16  22.23 BRL  22.23 BRL",
    );
    expect((await slipway(["invoices", "2026-000042", "-o", "json"], invoices)).out).toContain(
      '"total_amount": 2223',
    );
  });
});

describe("the machine's own programs", () => {
  // Shows: docs/cli.md#commands: `slipway open`
  it("open the project's address, or it is printed", async () => {
    const result = await slipway(["open", "pshop"]);
    expect(result).toMatchObject({ exitCode: 0, out: "https://shop.example.com\n" });
    expect(result.spawned[0]).toContain("https://shop.example.com");
    expect((await slipway(["open", "pshop", "--print"])).spawned).toEqual([]);
  });

  // Shows: docs/cli.md#commands: `slipway completion`
  it("complete what the program has", async () => {
    const { out } = await slipway(["completion", "bash"]);
    expect(out).toContain('"env") words="list set unset import"');
    expect(await slipway(["completion", "tcsh"])).toMatchObject({ exitCode: 2 });
  });
});

describe("jobs list", () => {
  // Shows: docs/cli.md#commands: `slipway jobs list`
  it("has the runs of the cycle", async () => {
    const run = {
      id: "r1",
      status: "succeeded",
      started_at: "2026-11-21T03:00:02.000Z",
      duration_seconds: 70,
    };
    const answers = { "GET project/pshop/job-runs": { data: { runs: [run], pagination: { total: 1 } } } };
    expect((await slipway(["jobs", "list", "pshop"], answers)).out).toContain(
      "r1  succeeded  2026-11-21T03:00:02.000Z  70",
    );
  });
});

describe("profiles", () => {
  it("that others may read are reported, and those that are broken", async () => {
    const file = join(folder, "slipway", "profiles.json");
    const list = { "GET project": { data: { projects: [], pagination: { total: 0 } } } };
    expect(await slipway(["login", "--name", "work"], list)).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ current: "work" });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await writeFile(file, "{}");
    expect(await slipway(["projects"], list)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("remove it"),
    });
    await rm(file);
  });
});
