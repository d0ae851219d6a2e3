/** What goes wrong in users' repositories: each a real build on the stack, its code, and a message that says what to do. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { casesToRun } from "../kit/long.ts";
import { apiClient, deleteProjects, uniqueName, untilStatus } from "./support/api.ts";
import { createGitProject, readLog, untilBuilt, untilEnded } from "./support/builds.ts";
import { connectRepository, createRepository, type Files, type Repository } from "./support/git.ts";
import { throughIngress } from "./support/ingress.ts";
import { traffic } from "./support/traffic.ts";

const call = apiClient();
const made: string[] = [];
let repository: Repository | undefined;
afterAll(async () => {
  await deleteProjects(call, made);
  await repository?.remove();
});

const manifest = (more: object = {}): string =>
  JSON.stringify({ name: "app", version: "1.0.0", scripts: { start: "node server.js" }, ...more });
const lockfile = JSON.stringify({
  name: "app",
  version: "1.0.0",
  lockfileVersion: 3,
  requires: true,
  packages: { "": { name: "app", version: "1.0.0" } },
});
const server = 'require("node:http").createServer((_, answer) => answer.end("ok")).listen(8080);\n';
const node: Files = { "package.json": manifest(), "package-lock.json": lockfile, "server.js": server };

interface Case {
  readonly what: string;
  readonly code: string;
  readonly says: RegExp;
  readonly files: Files;
  /** Settings of the build besides the folder. */
  readonly build?: object;
  /** Folder to build instead of the case's own. */
  readonly folder?: string;
  /** The builder's own tests have it too, by the same programs, or builds by another backend. */
  readonly isLong?: true;
}

const cases: readonly Case[] = [
  {
    what: "no lockfile",
    code: "NPM_LOCKFILE_REQUIRED",
    isLong: true,
    says: /npm install/,
    files: { ...node, "package-lock.json": undefined },
  },
  {
    what: "a lockfile that lacks a dependency",
    code: "NPM_LOCKFILE_OUT_OF_SYNC",
    says: /commit the changed lockfile/,
    files: { ...node, "package.json": manifest({ dependencies: { "is-odd": "3.0.1" } }) },
  },
  {
    what: "a build script that is not there",
    code: "NODE_BUILD_SCRIPT_MISSING",
    isLong: true,
    says: /`build`.*"scripts"/,
    files: node,
    build: { build_command: "npm run build" },
  },
  {
    what: "a build command that fails",
    code: "BUILD_COMMAND_FAILED",
    isLong: true,
    says: /exit code 3/,
    files: { ...node, "build.js": 'console.error("no such colour: bleu"); process.exit(3);\n' },
    build: { build_command: "node build.js" },
  },
  {
    what: "a folder that is not there",
    code: "ROOT_DIRECTORY_NOT_FOUND",
    isLong: true,
    says: /context_path/,
    files: node,
    folder: "no/such/folder",
  },
  {
    what: "a file in place of the folder",
    code: "ROOT_DIRECTORY_INVALID",
    isLong: true,
    says: /context_path/,
    files: node,
    folder: "file-in-place/server.js",
  },
  {
    what: "a dependency that does not exist",
    code: "DEPENDENCY_INSTALL_FAILED",
    says: /exists in the version asked for/,
    files: { "requirements.txt": "slipway-no-such-package==99.99.99\n", "main.py": "print('never')\n" },
    build: { runtime: "python", version: "3.13", start_command: "python main.py" },
  },
  {
    what: "a Dockerfile that cannot be read",
    code: "DOCKERFILE_INVALID",
    isLong: true,
    says: /Correct it/,
    files: { Dockerfile: "FORM scratch\n" },
    build: { runtime: "dockerfile", version: undefined, start_command: undefined },
  },
  {
    what: "a Dockerfile that begins with an image that is not there",
    code: "BASE_IMAGE_UNAVAILABLE",
    isLong: true,
    says: /FROM/,
    files: { Dockerfile: "FROM 127.0.0.1:1/no/such:image\n" },
    build: { runtime: "dockerfile", version: undefined, start_command: undefined },
  },
  {
    what: "a Dockerfile that is elsewhere",
    code: "DOCKERFILE_NOT_FOUND",
    isLong: true,
    says: /dockerfile_path/,
    files: { "README.md": "nothing to build\n" },
    build: {
      runtime: "dockerfile",
      version: undefined,
      start_command: undefined,
      dockerfile_path: "docker/Dockerfile",
    },
  },
];

const folderOf = ({ what }: Case): string =>
  what.replaceAll(" ", "-").replace("a-file-in-place-of-the-folder", "file-in-place");

describe("a repository with", () => {
  let source: { connectionId: string; repositoryId: string };
  beforeAll(async () => {
    const files = cases.flatMap((one) =>
      Object.entries(one.files)
        .filter(([, content]) => content !== undefined)
        .map(([name, content]) => [`${folderOf(one)}/${name}`, content]),
    );
    repository = await createRepository(uniqueName("failing"), Object.fromEntries(files));
    source = await connectRepository(repository);
  });

  // Shows: docs/builds.md#tested-on-the-stack: ten failing repositories, each with its code and a message
  test.concurrent.each(casesToRun(cases))("$what ends as $code", { timeout: 600_000 }, async (one) => {
    const build = { context_path: one.folder ?? folderOf(one), ...one.build };
    const change = { source: { auto_deploy: false }, build };
    const { project_id: id, build_id } = await createGitProject(call, uniqueName("failing"), source, change);
    made.push(id);
    const ended = await untilEnded(call, id, build_id, 400_000);
    const lines = (await readLog(call, id, build_id)).map(({ message }) => message);
    expect(ended, lines.join("\n")).toMatchObject({ status: "failed", error_code: one.code });
    expect(ended.error_message).toMatch(one.says);
    expect(lines.at(-1)).toBe(ended.error_message);
    await untilStatus(call, id, "failed");
  });
});

// Shows: docs/builds.md#tested-on-the-stack: a version that does not start: the previous version answers
test("a version that does not start is reported as PROJECT_PUBLISH_FAILED, and the previous version serves", {
  timeout: 600_000,
}, async () => {
  const broken = await createRepository(uniqueName("broken"), node);
  try {
    const change = { source: { auto_deploy: false } };
    const created = await createGitProject(
      call,
      uniqueName("broken"),
      await connectRepository(broken),
      change,
    );
    const { project_id: id, domain } = created;
    made.push(id);
    await untilBuilt(call, id, created.build_id);
    await untilStatus(call, id, "running");
    await broken.commit({ "server.js": 'throw new Error("no configuration");\n' });
    const running = traffic(domain);
    const deployed = await call<{ build_id: string }>("POST", `/v1/project/${id}/deploy`);
    const ended = await untilEnded(call, id, deployed.body.data?.build_id ?? "", 400_000);
    expect(ended).toMatchObject({ status: "failed", error_code: "PROJECT_PUBLISH_FAILED" });
    expect(ended.error_message).toMatch(/version before it, if there is one, still serves/);
    expect((await running.stop()).failures).toEqual([]);
    expect(await throughIngress(domain)).toEqual({ status: 200, text: "ok" });
  } finally {
    await broken.remove();
  }
});
