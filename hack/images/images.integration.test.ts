import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { isLong } from "../../test/kit/long.ts";
import { freePorts } from "../lib/ports.ts";
import { waitFor } from "../lib/wait.ts";
import { builder } from "./builder.ts";
import { buildImage, images, type StackImage } from "./index.ts";
import { type InsideProcess, inside } from "./inside.ts";
import { builderUser, COMPILE_CACHE } from "./processes.ts";

const undo: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) {
    await step();
  }
});

async function unpacked(name: StackImage["name"]) {
  const image = images.find((candidate) => candidate.name === name);
  if (!image) {
    throw new Error(`no image ${name}`);
  }
  const opened = await inside(await image.build());
  undo.push(opened.close);
  return opened;
}

function stopAfterTest(running: InsideProcess): InsideProcess {
  undo.push(async () => {
    await running.stop("SIGKILL").catch(() => undefined);
  });
  return running;
}

test("an unchanged image is found, not built again", async () => {
  for (const image of images) {
    await image.build();
  }
  for (const image of images) {
    expect(await image.build()).toMatchObject({ built: false });
  }
});

test("the HTTP samples answer as the stack contract says, each with its version, and stop cleanly", async () => {
  const seen: string[] = [];
  for (const name of ["sampleHttp", "sampleHttpV2"] as const) {
    const [port = 0] = await freePorts(1);
    const { run } = await unpacked(name);
    const env = { PORT: String(port), GREETING: "good day" };
    const running = stopAfterTest(run(["/sample-http"], { uid: 12345, env }));
    const url = `http://127.0.0.1:${port}`;
    const echo = await waitFor(
      name,
      30_000,
      async () => (await fetch(`${url}/any`)).json() as Promise<{ version: string }>,
    );
    expect(Object.keys(echo).sort()).toEqual([
      "headers",
      "hostname",
      "method",
      "path",
      "started_at",
      "version",
    ]);
    expect(await (await fetch(`${url}/env/GREETING`)).text()).toBe("good day");
    expect((await fetch(`${url}/status/503`)).status).toBe(503);
    seen.push(echo.version);
    expect(await running.stop("SIGTERM")).toBe(0);
    expect(running.output()).toMatch(/^GET \/env\/GREETING 200 /m);
  }
  expect(seen).toEqual(["v1", "v2"]);
});

test("the job sample prints the date and has the tools of the stack contract", async () => {
  const { run } = await unpacked("sampleJob");
  const date = run(["/bin/date"], { uid: 65532 });
  expect(await date.exited).toBe(0);
  expect(date.output()).toMatch(/ 20\d\d$/m);
  const script = run(["/bin/sh", "-c", "sleep 0 && echo done && exit 3"], {
    uid: 65532,
    env: { PATH: "/bin" },
  });
  expect(await script.exited).toBe(3);
  expect(script.output()).toBe("done\n");
});

test("a step of a build begins without compiling anything, and cannot change what it begins with", async () => {
  const { run, close } = await inside(await buildImage(builder()));
  undo.push(close);
  const env = { NODE_COMPILE_CACHE: COMPILE_CACHE, NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
  const usage = run(["/usr/local/bin/node", "/app/builder/src/main.ts"], { uid: builderUser, env });
  expect(await usage.exited).toBe(2);
  expect(usage.output().match(/was accepted/g)?.length).toBeGreaterThan(100);
  expect(usage.output()).not.toMatch(/was rejected|permission denied/);
  const writing = [
    "/bin/sh",
    "-c",
    `for file in ${COMPILE_CACHE}/*/*; do [ -w "$file" ] && exit 1; done; touch ${COMPILE_CACHE}/new`,
  ];
  const changed = run(writing, { uid: builderUser, env: { PATH: "/usr/bin:/bin" } });
  expect(await changed.exited).not.toBe(0);
  expect(changed.output()).toMatch(/new.*Permission denied/);
});

test("the platform's image runs Node, resolves the rooms and carries no tests", async () => {
  for (const name of ["operator", "apiServer"] as const) {
    const { run } = await unpacked(name);
    const script = `
      import { existsSync } from "node:fs";
      const crds = import.meta.resolve("@slipway/crds");
      const list = ["dist/operator.js", "dist/api-server.js", "dist/collector.js", "dist/log-drains.js", "dist/activator.js", "dist/recovery.js", "operator/src/main.ts", "api-server/src/main.ts", "packages/ledger/src/migrate.ts", "hack", "node_modules/vitest"];
      console.log(JSON.stringify({ major: process.version.split(".")[0], crds, there: list.filter((path) => existsSync("/app/" + path)) }));`;
    const node = ["/usr/local/bin/node", "--input-type=module", "--eval", script];
    const answered = run(["/usr/local/bin/node", "--eval", nodeInApp(node.slice(1))], { uid: 65532 });
    expect(await answered.exited, answered.output()).toBe(0);
    expect(JSON.parse(answered.output())).toEqual({
      major: "v24",
      crds: "file:///app/crds/src/index.ts",
      there: [
        "dist/operator.js",
        "dist/api-server.js",
        "dist/collector.js",
        "dist/log-drains.js",
        "dist/activator.js",
        "dist/recovery.js",
        "operator/src/main.ts",
        "api-server/src/main.ts",
        "packages/ledger/src/migrate.ts",
      ],
    });
  }
});

/** A script that runs Node again with /app as its working directory, as the image's configuration says. */
function nodeInApp(args: string[]): string {
  return `require("node:child_process").execFileSync(process.execPath, ${JSON.stringify(args)}, { cwd: "/app", stdio: "inherit" })`;
}

test.skipIf(!isLong)(
  "the ledger's PostgreSQL makes its database, asks for the password, stops cleanly and starts again on its data (--long)",
  async () => {
    const { run } = await unpacked("ledger");
    const folder = await mkdtemp(join(tmpdir(), "slipway-ledger-"));
    undo.push(() => rm(folder, { recursive: true, force: true }));
    const volume = join(folder, "volume");
    await mkdir(volume);
    await chown(volume, 999, 999);
    await writeFile(join(folder, "password"), "a secret'; --");
    await chmod(folder, 0o755);
    const [port = 0] = await freePorts(1);
    const start = (): InsideProcess =>
      stopAfterTest(
        run(["/usr/bin/docker-entrypoint.sh", "postgres", "-c", "jit=off", "-p", String(port)], {
          uid: 999,
          mounts: { "var/lib/postgresql/data": volume, media: folder },
          env: {
            PATH: "/usr/lib/postgresql/15/bin:/usr/bin:/bin",
            PGDATA: "/var/lib/postgresql/data/pgdata",
            POSTGRES_USER: "slipway",
            POSTGRES_DB: "ledger",
            POSTGRES_PASSWORD_FILE: "/media/password",
          },
        }),
      );
    const query = async (sql: string, password: string): Promise<string> => {
      const command = ["psql", "-h", "127.0.0.1", "-p", String(port), "-U", "slipway", "-Atc", sql, "ledger"];
      const env = { PATH: "/usr/lib/postgresql/15/bin:/usr/bin:/bin", PGPASSWORD: password };
      const asked = run(["/bin/env", ...command], { uid: 999, env });
      if ((await asked.exited) !== 0) {
        throw new Error(asked.output());
      }
      return asked.output().trim();
    };

    const first = start();
    await waitFor("PostgreSQL", 120_000, () => query("create table kept (id int)", "a secret'; --"));
    await expect(query("select 1", "wrong")).rejects.toThrow(/password authentication failed/);
    expect(await first.stop("SIGINT")).toBe(0);
    expect(first.output()).not.toContain("a secret");

    const second = start();
    const rows = await waitFor("PostgreSQL", 120_000, () =>
      query("select count(*), current_setting('server_encoding') from kept", "a secret'; --"),
    );
    expect(rows).toBe("0|UTF8");
    expect(second.output()).not.toContain("initdb");
    expect(await second.stop("SIGTERM")).toBe(0);
  },
  120_000,
);

test.skipIf(!isLong)(
  "Valkey asks for the password, answers its own client, runs Lua and stops cleanly (--long)",
  async () => {
    const { run } = await unpacked("valkey");
    const folder = await mkdtemp(join(tmpdir(), "slipway-valkey-"));
    undo.push(() => rm(folder, { recursive: true, force: true }));
    await chmod(folder, 0o755);
    await writeFile(join(folder, "auth.conf"), "requirepass a-password\n");
    const [port = 0] = await freePorts(1);
    const settings = ["/media/auth.conf", "--port", String(port), "--save", "", "--dir", "/tmp"];
    const mounts = { media: folder };
    const server = stopAfterTest(run(["/usr/bin/valkey-server", ...settings], { uid: 12345, mounts }));
    const ask = async (password: string, ...command: string[]): Promise<string> => {
      const env = { VALKEYCLI_AUTH: password };
      const asked = run(["/usr/bin/valkey-cli", "-p", String(port), ...command], { uid: 12345, env });
      await asked.exited;
      return asked.output();
    };
    await waitFor("Valkey", 10_000, async () => (await ask("a-password", "ping")).includes("PONG"));
    expect(await ask("wrong", "get", "a")).toContain("NOAUTH");
    expect(await ask("a-password", "eval", "return redis.call('INCR', KEYS[1])", "1", "a")).toBe("1\n");
    expect(await server.stop("SIGTERM")).toBe(0);
  },
  60_000,
);
