import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { constants, mkdtemp, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Task } from "./protocol.ts";
import { runTask } from "./run.ts";

/** The engine's side is a shell, as it is in a pod. */
let folder: string;
let exchange: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-backup-"));
  exchange = await mkdtemp(join(folder, "exchange-"));
  path = join(folder, "shop", "one.dump");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Runs a script as the engine's container would; `end` is what it reports. */
async function engine(script: string, end = 'echo "$?" >exit.new && mv exit.new exit'): Promise<void> {
  const child = spawn("/bin/sh", ["-c", `mkfifo data; ${script}; ${end}`], { cwd: exchange });
  await once(child, "exit");
}

const store = (): Task => ({ do: "store", place: { kind: "file", path }, counts: "rows" });
const fetchTask = (sha256: string): Task => ({
  do: "fetch",
  place: { kind: "file", path },
  counts: "rows",
  sha256,
});
const sha256 = (bytes: Buffer | string) => createHash("sha256").update(bytes).digest("hex");

describe("a dump", () => {
  test("is stored with its size, its checksum and what is in it", async () => {
    const bytes = randomBytes(5_000_000);
    await writeFile(join(exchange, "source"), bytes);
    const script = `printf 'public.b\\t2\\npublic.a\\t40\\n' >contents; cat source >data`;
    const [result] = await Promise.all([runTask(store(), exchange), engine(script)]);
    expect(result).toEqual({
      ok: true,
      sizeBytes: bytes.length,
      sha256: sha256(bytes),
      contents: { tables: 2, rows: 42, hash: sha256("public.a\t40\npublic.b\t2").slice(0, 32) },
    });
    expect((await readFile(path)).equals(bytes)).toBe(true);
  });

  test.each([
    ["fails half way", "printf half >data; false", undefined],
    ["fails before it writes", "false", undefined],
    ["is killed", "printf half >data", ":"],
  ])("that %s leaves nothing", async (_, script, end) => {
    const [result] = await Promise.all([
      runTask(store(), exchange, 300),
      engine(`: >contents; ${script}`, end),
    ]);
    expect(result).toMatchObject({ ok: false, reason: "DumpFailed" });
    expect(await readdir(join(folder, "shop"))).toEqual([]);
    // Lets go of what was never opened.
    await open(join(exchange, "data"), constants.O_RDWR).then((pipe) => pipe.close());
  });

  test("replaces what a killed try has left", async () => {
    await engine("true").then(() => rm(join(exchange, "exit")));
    await rm(join(exchange, "data"));
    const before = join(folder, "shop", "one.dump.7-1.part");
    await runTask({ do: "erase", place: { kind: "file", path } }, exchange);
    const first = runTask(store(), exchange);
    await engine("printf 'public.a\\t1\\n' >contents; printf whole >data");
    await first;
    await writeFile(before, "half");
    await rm(join(exchange, "exit"));
    await rm(join(exchange, "data"));
    const second = runTask(store(), exchange);
    await engine("printf 'public.a\\t1\\n' >contents; printf again >data");
    expect(await second).toMatchObject({ ok: true, sizeBytes: 5 });
    expect(await readdir(join(folder, "shop"))).toEqual(["one.dump"]);
    expect(await readFile(path, "utf8")).toBe("again");
  });
});

describe("a stored backup", () => {
  beforeEach(async () => {
    await Promise.all([
      runTask(store(), exchange),
      engine("printf 'public.a\\t3\\n' >contents; printf stored >data"),
    ]);
    await rm(exchange, { recursive: true });
    exchange = await mkdtemp(join(folder, "exchange-"));
  });

  test("is loaded, and what is found is reported", async () => {
    const script = "cat data >loaded; printf 'public.a\\t3\\n' >contents";
    const [result] = await Promise.all([runTask(fetchTask(sha256("stored")), exchange), engine(script)]);
    expect(result).toMatchObject({ ok: true, sizeBytes: 6, contents: { tables: 1, rows: 3 } });
    expect(await readFile(join(exchange, "loaded"), "utf8")).toBe("stored");
  });

  test("that is not what was stored is reported", async () => {
    const script = "cat data >loaded; : >contents";
    const [result] = await Promise.all([runTask(fetchTask(sha256("other")), exchange), engine(script)]);
    expect(result).toMatchObject({ ok: false, reason: "DataDamaged" });
  });

  test("that cannot be loaded is reported", async () => {
    const [result] = await Promise.all([
      runTask(fetchTask(sha256("stored")), exchange),
      engine(": >contents; head -c 1 data >/dev/null; (exit 3)"),
    ]);
    expect(result).toEqual({
      ok: false,
      reason: "LoadFailed",
      message: "loading the dump ended with exit code 3",
    });
  });

  test("is erased, twice too", async () => {
    const erase: Task = { do: "erase", place: { kind: "file", path } };
    expect(await runTask(erase, exchange)).toMatchObject({ ok: true });
    expect(await runTask(erase, exchange)).toMatchObject({ ok: true });
    expect(await readdir(join(folder, "shop"))).toEqual([]);
  });

  test("that is missing is reported", async () => {
    await rm(path);
    const task = runTask(fetchTask(sha256("stored")), exchange);
    expect(await task).toMatchObject({ ok: false, reason: "StoreFailed" });
  });
});
