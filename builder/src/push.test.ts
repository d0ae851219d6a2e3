import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Redactor } from "./log/redact.ts";
import { Log } from "./log/writer.ts";
import { type PushContext, pushStep } from "./push.ts";
import { exitCodes } from "./result.ts";
import { runStep } from "./runner.ts";

let folder: string;
let lines: string[];
const digest = `sha256:${"a".repeat(64)}`;
const task = { step: "push", repository: "registry.example/alpha/pshop", timeoutSeconds: 5 } as const;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-push-"));
  lines = [];
  await mkdir(join(folder, "image/blobs/sha256"), { recursive: true });
  await writeFile(join(folder, "image/index.json"), "{}");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Pushes with a program that does this. */
async function push(script: string): Promise<{ digest: string }> {
  const program = join(folder, "crane");
  await writeFile(program, `#!/bin/sh\n${script}\n`);
  await chmod(program, 0o700);
  const write = (line: string): void => void lines.push(line);
  const log = new Log({ step: "push", redactor: new Redactor({ values: [] }), write, now: () => new Date() });
  const context: PushContext = {
    task,
    log,
    paths: { work: folder, secrets: join(folder, "secrets"), cache: folder },
    program,
    pauses: [1],
  };
  return pushStep(context);
}

test("the digest is the one that the program tells of what it has pushed", async () => {
  expect(await push(`echo ${task.repository}@${digest}`)).toEqual({ digest });
  await expect(push("echo pushed")).rejects.toMatchObject({ failure: { code: "PROJECT_PUBLISH_FAILED" } });
});

test("links that a step of the build has left in the image are not followed", async () => {
  await mkdir(join(folder, "secrets"));
  await writeFile(join(folder, "secrets/token"), "t0ken-of-push");
  await symlink(join(folder, "secrets/token"), join(folder, "image/blobs/sha256/abc"));
  const pushed = push(`cat "$2"/blobs/sha256/*; echo ${task.repository}@${digest}`);
  await expect(pushed).rejects.toMatchObject({ failure: { code: "BUILD_FAILED_UNCLASSIFIED" } });
  expect(lines.join("")).not.toContain("t0ken-of-push");
  await rm(join(folder, "image"), { recursive: true });
  await symlink(join(folder, "secrets"), join(folder, "image"));
  await expect(push(`echo ${task.repository}@${digest}`)).rejects.toMatchObject({
    failure: { code: "BUILD_FAILED_UNCLASSIFIED" },
  });
});

test("a failure to publish is final: the step has tried as often as there is sense in it", async () => {
  await writeFile(join(folder, "crane"), "#!/bin/sh\necho 507 Insufficient Storage >&2; exit 1\n", {
    mode: 0o700,
  });
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  const { result, exitCode } = await runStep({
    step: "push",
    task: JSON.stringify({ ...task, timeoutSeconds: 1 }),
    paths: { work: folder, secrets: join(folder, "secrets"), cache: folder },
    write: (line) => void lines.push(line),
  });
  vi.unstubAllEnvs();
  expect(result.code).toMatch(/^PROJECT_PUBLISH_/);
  expect(exitCode).toBe(exitCodes.failed);
});
