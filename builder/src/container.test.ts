import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Repository } from "../../test/kit/builder/repository.ts";
import { handedOver, handOver } from "./completion.ts";
import { runContainer } from "./container.ts";
import { type LogLine, parseLogLine } from "./log/line.ts";
import { type Paths, workPaths } from "./paths.ts";
import { exitCodes } from "./result.ts";
import type { Container, Task } from "./task.ts";

let paths: Paths;
let lines: LogLine[];
let repository: Repository;
beforeEach(async () => {
  const root = await mkdtemp(join(tmpdir(), "slipway-container-"));
  paths = { work: join(root, "work"), secrets: join(root, "secrets"), cache: join(root, "cache") };
  await mkdir(paths.work);
  lines = [];
  repository = await Repository.create();
});
afterEach(async () => {
  await repository.remove();
  await rm(dirname(paths.work), { recursive: true, force: true });
});

const tasks = (branch: string): Record<Container, Task[]> => ({
  fetch: [
    {
      step: "fetch",
      url: repository.url,
      provider: "forgejo",
      branch,
      maxBytes: 1_000_000,
      maxFiles: 100,
      timeoutSeconds: 20,
    },
  ],
  build: [
    { step: "plan", settings: {}, images: {}, port: 8080 },
    { step: "build", cacheBytes: 1, maxImageBytes: 1, timeoutSeconds: 1 },
  ],
  push: [{ step: "push", repository: "127.0.0.1:1/a/b", maxImageBytes: 1, timeoutSeconds: 1 }],
});

/** As the pod does: none of them waits for another one to be started. */
const run = (container: Container, branch = "main", signal?: AbortSignal) =>
  runContainer({
    container,
    tasks: JSON.stringify(tasks(branch)[container]),
    paths,
    write: (line) => lines.push(parseLogLine(line) as LogLine),
    signal,
  });

const silent = { exitCode: exitCodes.passing };

describe("containers that start at once", () => {
  test("take turns, and those after one that failed end without a word", async () => {
    await repository.commit("Begin", { "unknown.xyz": "" });
    const [push, build, fetch] = await Promise.all([run("push"), run("build"), run("fetch")]);
    expect(fetch).toMatchObject({ exitCode: 0, result: { step: "fetch", commitMessage: "Begin" } });
    // The planner's word, in the container that would have built.
    expect(build).toMatchObject({ exitCode: 1, result: { step: "plan", code: "RUNTIME_NOT_DETECTED" } });
    expect(push).toEqual(silent);
    expect(lines.map(({ step }) => step)).not.toContain("push");
    expect(lines.map(({ step }) => step)).not.toContain("build");
    const fetched = lines.findIndex(({ step, last }) => step === "fetch" && last);
    expect(lines.findIndex(({ step }) => step === "plan")).toBeGreaterThan(fetched);
  });

  test("end without a word when the first one failed", async () => {
    await repository.commit("Begin", { a: "" });
    const [push, build, fetch] = await Promise.all([
      run("push", "gone"),
      run("build", "gone"),
      run("fetch", "gone"),
    ]);
    expect(fetch).toMatchObject({ exitCode: 1, result: { code: "GIT_COMMIT_UNAVAILABLE" } });
    expect([build, push]).toEqual([silent, silent]);
    expect(new Set(lines.map(({ step }) => step))).toEqual(new Set(["fetch"]));
  });

  test("wait until they are stopped for one that says nothing", async () => {
    const stop = new AbortController();
    const waiting = run("push", "main", stop.signal);
    stop.abort();
    expect(await waiting).toEqual(silent);
  });
});

describe("a hand-over", () => {
  const file = (container: Container = "build") => workPaths(paths).handOver(container);

  test("is told as soon as it is written, and also when it was before", async () => {
    const waiting = handedOver(paths, "build");
    await handOver(paths, "build", "done");
    expect(await waiting).toBe("done");
    expect(await handedOver(paths, "build")).toBe("done");
    await handOver(paths, "build", "failed");
    expect(await handedOver(paths, "build")).toBe("failed");
  });

  test("of another container is none", async () => {
    await handOver(paths, "fetch", "done");
    const stop = AbortSignal.timeout(300);
    expect(await handedOver(paths, "build", stop)).toBeUndefined();
  });

  test.each([
    ["a link to what this container alone has", (path: string) => symlink(join(paths.secrets, "word"), path)],
    ["a pipe", async (path: string) => void execFileSync("mkfifo", [path])],
    ["a folder", (path: string) => mkdir(path)],
    ["an endless device", (path: string) => symlink("/dev/zero", path)],
    ["another word", (path: string) => writeFile(path, "done, and more than fits")],
  ])("is not %s", async (_, forge) => {
    await mkdir(paths.secrets);
    await writeFile(join(paths.secrets, "word"), "done");
    await forge(file());
    expect(await handedOver(paths, "build", AbortSignal.timeout(300))).toBeUndefined();
  });

  test("is written over whatever stands in its way, and follows no link", async () => {
    const other = join(paths.work, "other");
    await writeFile(other, "kept");
    await symlink(other, file());
    await symlink(other, `${file()}.new`);
    await handOver(paths, "build", "done");
    expect(await readFile(file(), "utf8")).toBe("done");
    expect(await readFile(other, "utf8")).toBe("kept");
    expect(existsSync(`${file()}.new`)).toBe(false);
  });

  test("that cannot be written ends the build: nobody waits for ever", async () => {
    await repository.commit("Begin", { a: "" });
    await mkdir(join(file("fetch"), "in-the-way"), { recursive: true });
    expect(await run("fetch")).toMatchObject({
      exitCode: exitCodes.passing,
      result: { step: "fetch", code: "BUILD_ENGINE_FAILED" },
    });
  });
});
