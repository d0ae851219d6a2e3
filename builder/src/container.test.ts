import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Repository } from "../../test/kit/builder/repository.ts";
import { reportCompletion, waitForCompletion } from "./completion.ts";
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

/** As in a pod: no container waits for another one to start. */
const run = (container: Container, branch = "main", signal?: AbortSignal) =>
  runContainer({
    container,
    tasks: JSON.stringify(tasks(branch)[container]),
    paths,
    write: (line) => lines.push(parseLogLine(line) as LogLine),
    signal,
  });

const skipped = { exitCode: exitCodes.passing };

describe("containers that start together", () => {
  test("run in order, and those after a failed one end silently", async () => {
    await repository.commit("Begin", { "unknown.xyz": "" });
    const [push, build, fetch] = await Promise.all([run("push"), run("build"), run("fetch")]);
    expect(fetch).toMatchObject({ exitCode: 0, result: { step: "fetch", commitMessage: "Begin" } });
    // The planner's failure, in the container that would have built.
    expect(build).toMatchObject({ exitCode: 1, result: { step: "plan", code: "RUNTIME_NOT_DETECTED" } });
    expect(push).toEqual(skipped);
    expect(lines.map(({ step }) => step)).not.toContain("push");
    expect(lines.map(({ step }) => step)).not.toContain("build");
    const fetched = lines.findIndex(({ step, last }) => step === "fetch" && last);
    expect(lines.findIndex(({ step }) => step === "plan")).toBeGreaterThan(fetched);
  });

  test("end silently when the first one failed", async () => {
    await repository.commit("Begin", { a: "" });
    const [push, build, fetch] = await Promise.all([
      run("push", "gone"),
      run("build", "gone"),
      run("fetch", "gone"),
    ]);
    expect(fetch).toMatchObject({ exitCode: 1, result: { code: "GIT_COMMIT_UNAVAILABLE" } });
    expect([build, push]).toEqual([skipped, skipped]);
    expect(new Set(lines.map(({ step }) => step))).toEqual(new Set(["fetch"]));
  });

  test("wait for one that never completes until they are stopped", async () => {
    const stop = new AbortController();
    const waiting = run("push", "main", stop.signal);
    stop.abort();
    expect(await waiting).toEqual(skipped);
  });
});

describe("a completion", () => {
  const file = (container: Container = "build") => workPaths(paths).completion(container);

  test("is seen as soon as it is written, and when it was written before", async () => {
    const waiting = waitForCompletion(paths, "build");
    await reportCompletion(paths, "build", "done");
    expect(await waiting).toBe("done");
    expect(await waitForCompletion(paths, "build")).toBe("done");
    await reportCompletion(paths, "build", "failed");
    expect(await waitForCompletion(paths, "build")).toBe("failed");
  });

  test("of another container does not count", async () => {
    await reportCompletion(paths, "fetch", "done");
    const stop = AbortSignal.timeout(300);
    expect(await waitForCompletion(paths, "build", stop)).toBeUndefined();
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: creates links, pipes or folders in place of
  test.each([
    ["a link to a file of this container", (path: string) => symlink(join(paths.secrets, "word"), path)],
    ["a pipe", async (path: string) => void execFileSync("mkfifo", [path])],
    ["a folder", (path: string) => mkdir(path)],
    ["an endless device", (path: string) => symlink("/dev/zero", path)],
    ["another word", (path: string) => writeFile(path, "done, and more than fits")],
  ])("is not %s", async (_, forge) => {
    await mkdir(paths.secrets);
    await writeFile(join(paths.secrets, "word"), "done");
    await forge(file());
    expect(await waitForCompletion(paths, "build", AbortSignal.timeout(300))).toBeUndefined();
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: creates links, pipes or folders in place of
  test("replaces whatever is at its path, and follows no link", async () => {
    const other = join(paths.work, "other");
    await writeFile(other, "kept");
    await symlink(other, file());
    await symlink(other, `${file()}.new`);
    await reportCompletion(paths, "build", "done");
    expect(await readFile(file(), "utf8")).toBe("done");
    expect(await readFile(other, "utf8")).toBe("kept");
    expect(existsSync(`${file()}.new`)).toBe(false);
  });

  test("that cannot be written fails the build, so that no container waits for ever", async () => {
    await repository.commit("Begin", { a: "" });
    await mkdir(join(file("fetch"), "in-the-way"), { recursive: true });
    expect(await run("fetch")).toMatchObject({
      exitCode: exitCodes.passing,
      result: { step: "fetch", code: "BUILD_ENGINE_FAILED" },
    });
  });
});
