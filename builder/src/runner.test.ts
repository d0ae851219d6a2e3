import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Repository } from "../../test/kit/builder/repository.ts";
import { type LogLine, MAX_LOG_BYTES, parseLogLine } from "./log/line.ts";
import { type Paths, workPaths } from "./paths.ts";
import { parseStepResult, stepResult } from "./result.ts";
import { runStep } from "./runner.ts";
import { parseTask, type Step, type Task } from "./task.ts";

let paths: Paths;
let lines: LogLine[];
beforeEach(async () => {
  const root = await mkdtemp(join(tmpdir(), "slipway-runner-"));
  paths = { work: join(root, "work"), secrets: join(root, "secrets"), cache: join(root, "cache") };
  lines = [];
});
afterEach(() => rm(dirname(paths.work), { recursive: true, force: true }));

const images = { node: { "24": "base/node:24" } };
const planTask = (more: Partial<Extract<Task, { step: "plan" }>> = {}): Task => ({
  step: "plan",
  settings: {},
  images,
  port: 8080,
  ...more,
});

async function run(step: Step, task: Task | string) {
  const tasks = typeof task === "string" ? task : JSON.stringify([task]);
  const written: LogLine[] = [];
  const write = (line: string) => written.push(parseLogLine(line) as LogLine);
  const ended = await runStep({ step, tasks, paths, write });
  expect(written.at(-1)).toMatchObject({ step, last: true });
  lines.push(...written.slice(0, -1));
  // The operator parses the same result.
  expect(parseStepResult(`noise\n${JSON.stringify(ended.result)}\n`)).toEqual(stepResult.parse(ended.result));
  return ended;
}

async function checkout(files: Record<string, string>, links: Record<string, string> = {}): Promise<void> {
  const { source } = workPaths(paths);
  await mkdir(source, { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(source, path)), { recursive: true });
    await writeFile(join(source, path), text);
  }
  for (const [path, target] of Object.entries(links)) {
    await symlink(target, join(source, path));
  }
}

const text = () => lines.map(({ message }) => message).join("\n");
const fetchTask = (url: string, branch = "main"): Task => ({
  step: "fetch",
  url,
  provider: "forgejo",
  branch,
  maxBytes: 1_000_000,
  maxFiles: 100,
  timeoutSeconds: 20,
});

describe("fetch and plan", () => {
  test("lead from a repository to a Dockerfile", async () => {
    const repository = await Repository.create();
    const commitSha = await repository.commit("Begin", { "app/server.js": "1", "README.md": "" });
    expect(await run("fetch", fetchTask(repository.url))).toEqual({
      exitCode: 0,
      result: { step: "fetch", commitSha, commitMessage: "Begin" },
    });
    await repository.remove();
    expect(await run("plan", planTask({ contextPath: "app" }))).toEqual({
      exitCode: 0,
      result: { step: "plan", runtime: "node", version: "24" },
    });
    const { plan } = workPaths(paths);
    expect(await readFile(join(plan, "Dockerfile"), "utf8")).toContain("FROM base/node:24 AS build");
    expect(JSON.parse(await readFile(join(plan, "plan.json"), "utf8"))).toMatchObject({
      root: join(workPaths(paths).source, "app"),
    });
    expect(lines.filter(({ step }) => step === "plan").map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test("a failure is reported by code, message, exit code and a last line of the log", async () => {
    const repository = await Repository.create();
    await repository.commit("Begin", { a: "" });
    const { exitCode, result } = await run("fetch", fetchTask(repository.url, "gone"));
    await repository.remove();
    expect(exitCode).toBe(1);
    expect(result).toMatchObject({ step: "fetch", code: "GIT_COMMIT_UNAVAILABLE" });
    expect(lines.at(-1)).toMatchObject({ level: "error", message: result.message });
  });

  test("a transient failure has an exit code of its own", async () => {
    const task = fetchTask("https://127.0.0.1:1/repository.git");
    expect(await run("fetch", task)).toMatchObject({
      exitCode: 2,
      result: { code: "GIT_SERVER_UNAVAILABLE" },
    });
  });

  test("no secret appears in the log or the result", async () => {
    await mkdir(join(paths.secrets, "git"), { recursive: true });
    await writeFile(join(paths.secrets, "git/password"), "canary-password\n");
    await writeFile(join(paths.secrets, "git/username"), "ada");
    const { result } = await run("fetch", fetchTask("https://127.0.0.1:1/canary-password.git"));
    expect(JSON.stringify([result, lines])).not.toContain("canary");
    expect(text()).toContain("***");
  });
});

describe("the folder that is built", () => {
  beforeEach(() =>
    checkout(
      { "server.js": "1", "app/server.js": "1", ".git/config": "", "sub/.GIT/x": "" },
      { out: "/etc", up: "../..", in: "app", loop: "loop", file: "server.js" },
    ),
  );

  test.each([
    ["gone", "ROOT_DIRECTORY_NOT_FOUND"],
    ["app/gone", "ROOT_DIRECTORY_NOT_FOUND"],
    [".git", "ROOT_DIRECTORY_NOT_FOUND"],
    ["sub/.GIT", "ROOT_DIRECTORY_NOT_FOUND"],
    ["out", "ROOT_DIRECTORY_INVALID"],
    ["up", "ROOT_DIRECTORY_INVALID"],
    ["up/work/source/app", undefined],
    ["loop", "ROOT_DIRECTORY_INVALID"],
    ["server.js", "ROOT_DIRECTORY_INVALID"],
    ["file", "ROOT_DIRECTORY_INVALID"],
    ["server.js/deeper", "ROOT_DIRECTORY_INVALID"],
    ["in", undefined],
    ["app", undefined],
    [".", undefined],
  ])("%s", async (contextPath, code) => {
    const { exitCode, result } = await run("plan", planTask({ contextPath }));
    expect(result.code).toBe(code);
    expect(exitCode).toBe(code === undefined ? 0 : 1);
  });

  test("is planned without following its links", async () => {
    await rm(join(workPaths(paths).source, "server.js"));
    await symlink("/etc/passwd", join(workPaths(paths).source, "Dockerfile"));
    const { result } = await run("plan", planTask({ settings: { dockerfilePath: "Dockerfile" } }));
    expect(result.code).toBe("DOCKERFILE_NOT_FOUND");
    expect(existsSync(workPaths(paths).plan)).toBe(false);
  });
});

test("a task that cannot be parsed is the platform's fault, and none of its values is printed", async () => {
  const { exitCode, result } = await run("plan", '[{"step":"plan","port":"canary"}]');
  expect(exitCode).toBe(2);
  expect(result.code).toBe("BUILD_ENGINE_FAILED");
  expect(text()).toContain("settings");
  expect(text()).not.toContain("canary");
  expect(() => parseTask("fetch", JSON.stringify([planTask()]))).toThrow("none of the step fetch");
  expect(() => parseTask("fetch", JSON.stringify([fetchTask("http://git.example/x")]))).toThrow("url");
  expect(() => parseTask("plan", JSON.stringify(planTask()))).toThrow("expected array");
  expect(() => parseTask("fetch", undefined)).toThrow("no JSON");
});

test("a stopped step can be retried, whatever its programs report", async () => {
  const asked = AbortSignal.abort();
  const task = JSON.stringify([fetchTask("https://127.0.0.1:1/nothing")]);
  const ended = await runStep({ step: "fetch", tasks: task, paths, write: () => undefined, signal: asked });
  expect(ended).toMatchObject({ result: { code: "BUILD_ENGINE_FAILED" }, exitCode: 2 });
});

test("steps share one log's length", async () => {
  await checkout({ "server.js": "1" });
  await writeFile(workPaths(paths).logUsed, String(MAX_LOG_BYTES));
  await run("plan", planTask());
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ truncated: true });
});

test.each(["", "killed", "{}", '{"step":"cook"}', '{"step":"push","digest":"latest"}'])(
  "the termination message %j contains no result",
  (message) => {
    expect(parseStepResult(message)).toBeUndefined();
  },
);
