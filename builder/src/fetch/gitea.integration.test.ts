import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Repository } from "../../../test/kit/builder/repository.ts";
import { startGitea, type TestGitea } from "../../../test/kit/servers/gitea.ts";
import { StepError } from "../failures/codes.ts";
import { Redactor } from "../log/redact.ts";
import { Log } from "../log/writer.ts";
import { fetchSource } from "./step.ts";

/** Large files and submodules, from a real Git server with a private repository. */

let gitea: TestGitea;
let work: string;
let lines: string[];
const large = randomBytes(300_000);

beforeAll(async () => {
  gitea = await startGitea();
});
afterAll(() => gitea?.stop());
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), "slipway-gitea-fetch-"));
  lines = [];
});
afterEach(() => rm(work, { recursive: true, force: true }));

/** One request of a client that pushes. */
async function send(method: string, url: string, headers: Record<string, string>, body: Buffer | string) {
  const length = { "content-length": String(Buffer.byteLength(body)) };
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const sent = request(url, { method, headers: { ...headers, ...length }, ca: gitea.ca }, (answer) => {
      text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const authorization = () => `Basic ${Buffer.from(`${gitea.username}:${gitea.token}`).toString("base64")}`;

/** Pushes a large file as git-lfs does. */
async function pushLarge(repository: string, content: Buffer): Promise<void> {
  const type = "application/vnd.git-lfs+json";
  const object = { oid: createHash("sha256").update(content).digest("hex"), size: content.length };
  const batch = await send(
    "POST",
    `${gitea.url}/${gitea.username}/${repository}.git/info/lfs/objects/batch`,
    { accept: type, "content-type": type, authorization: authorization() },
    JSON.stringify({ operation: "upload", transfers: ["basic"], objects: [object] }),
  );
  const answered = JSON.parse(batch.body) as {
    objects: { actions: { upload: { href: string; header?: Record<string, string> } } }[];
  };
  const { href, header = {} } = answered.objects[0]?.actions.upload ?? { href: "" };
  const put = { "content-type": "application/octet-stream", ...header };
  expect((await send("PUT", href, put, content)).status).toBe(200);
}

const pointer = (content: Buffer) =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${createHash("sha256").update(content).digest("hex")}\nsize ${content.length}\n`;

/** Pushes a repository of these files, whose `vendor/lib` is a submodule if that is given. */
async function make(
  name: string,
  files: Record<string, string>,
  { isPrivate = true, submodule }: { isPrivate?: boolean; submodule?: string } = {},
): Promise<string> {
  await mkdir(work, { recursive: true });
  const caFile = join(work, "push-ca.pem");
  await writeFile(caFile, gitea.ca);
  await gitea.call("POST", "/user/repos", { name, private: isPrivate, default_branch: "main" });
  const local = await Repository.create();
  try {
    let commit = await local.commit("Files", files);
    if (submodule !== undefined) {
      await local.git("update-index", "--add", "--cacheinfo", `160000,${submodule},vendor/lib`);
      await local.git("commit", "--quiet", "--message", "With a submodule");
      commit = await local.git("rev-parse", "HEAD");
    }
    const settings = [`http.sslCAInfo=${caFile}`, `http.extraHeader=Authorization: ${authorization()}`];
    const address = `${gitea.url}/${gitea.username}/${name}.git`;
    await local.git(...settings.flatMap((one) => ["-c", one]), "push", "--quiet", address, "main");
    return commit;
  } finally {
    await local.remove();
  }
}

async function fetch(repository: string) {
  const files = { usernameFile: join(work, "username"), passwordFile: join(work, "password") };
  const caFile = join(work, "ca.pem");
  await mkdir(work, { recursive: true });
  await writeFile(files.usernameFile, gitea.username);
  await writeFile(files.passwordFile, gitea.token);
  await writeFile(caFile, gitea.ca);
  await mkdir(join(work, "scratch"));
  return fetchSource({
    task: {
      step: "fetch",
      url: `${gitea.url}/${gitea.username}/${repository}.git`,
      provider: "forgejo",
      branch: "main",
      address: "127.0.0.1",
      caFile,
      maxBytes: 10_000_000,
      maxFiles: 1_000,
      timeoutSeconds: 30,
    },
    log: new Log({
      step: "fetch",
      redactor: new Redactor({ credentials: [gitea.token] }),
      write: (line) => lines.push(line),
      now: () => new Date(),
    }),
    credential: files,
    target: join(work, "source"),
    scratch: join(work, "scratch"),
  });
}

const failureOf = async (repository: string) => {
  const error = await fetch(repository).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StepError);
  return (error as StepError).failure;
};

test("large files replace their pointers", async () => {
  const attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
  await make("large", {
    ".gitattributes": attributes,
    "data/one.bin": pointer(large),
    "two.bin": pointer(large),
  });
  await pushLarge("large", large);
  await fetch("large");
  expect((await readFile(join(work, "source/data/one.bin"))).equals(large)).toBe(true);
  expect((await stat(join(work, "source/two.bin"))).size).toBe(large.length);
  expect(lines.join("")).toContain("Fetched 2 large files");
  expect(lines.join("")).not.toContain(gitea.token);
});

test("a large file that was never pushed is named", async () => {
  const gone = Buffer.from("never pushed");
  await make("lost", { ".gitattributes": "*.bin filter=lfs\n", "lost.bin": pointer(gone) });
  expect(await failureOf("lost")).toMatchObject({
    code: "GIT_LFS_OBJECT_UNAVAILABLE",
    message: expect.stringContaining("`lost.bin`") as string,
  });
});

// Shows: docs/builds.md#what-hostile-repositories-come-to: has submodules elsewhere, in the builder's
test("a public submodule is fetched, and a private one is not, though the credential could", async () => {
  for (const name of ["public", "private"]) {
    const submodule = await make(`${name}-lib`, { "lib.txt": name }, { isPrivate: name === "private" });
    const modules = `[submodule "lib"]\n\tpath = vendor/lib\n\turl = ../${name}-lib.git\n`;
    await make(`with-${name}`, { ".gitmodules": modules }, { submodule });
  }
  await fetch("with-public");
  expect(await readFile(join(work, "source/vendor/lib/lib.txt"), "utf8")).toBe("public");
  await rm(work, { recursive: true });
  expect(await failureOf("with-private")).toMatchObject({ code: "GIT_SUBMODULE_UNAVAILABLE" });
});
