import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { GitServer, type GitServerOptions } from "../../../test/kit/builder/git-server.ts";
import { Repository } from "../../../test/kit/builder/repository.ts";
import { type FailureCode, StepError } from "../failures/codes.ts";
import { Redactor } from "../log/redact.ts";
import { Log } from "../log/writer.ts";
import type { FetchTask } from "../task.ts";
import { parseTree } from "./git.ts";
import { readPointer } from "./lfs.ts";
import { fetchSource } from "./step.ts";
import { ownAddress } from "./submodules.ts";

const PASSWORD = "canary-Kq7 $(id)'\"-password";
const GONE = "0123456789012345678901234567890123456789";

let repository: Repository;
let first: string;
let second: string;
let work: string;
let log: string[];
const servers: GitServer[] = [];

beforeAll(async () => {
  repository = await Repository.create();
  first = await repository.commit("First\n\nwith a body", { "index.js": "one", "src/deep/a b.txt": "text" });
  second = await repository.commit(
    "Second",
    { "index.js": "two" },
    { outside: "/etc/passwd", inside: "src/deep" },
  );
  await repository.git("tag", "v1.0.0", first);
});
afterAll(() => repository.remove());
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), "slipway-fetch-"));
  log = [];
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await rm(work, { recursive: true, force: true });
});

interface Options extends Partial<FetchTask> {
  username?: string;
  password?: string;
}

async function fetch({ username, password, ...more }: Options) {
  const task: FetchTask = {
    step: "fetch",
    url: repository.url,
    provider: "forgejo",
    maxBytes: 10_000_000,
    maxFiles: 1_000,
    timeoutSeconds: 30,
    ...more,
  };
  const files = { usernameFile: join(work, "username"), passwordFile: join(work, "pass'word") };
  if (password !== undefined) {
    await writeFile(files.usernameFile, username ?? "ada");
    await writeFile(files.passwordFile, password);
  }
  const redactor = new Redactor({ credentials: password === undefined ? [] : [password] });
  return fetchSource({
    task,
    log: new Log({ step: "fetch", redactor, write: (line) => log.push(line), now: () => new Date() }),
    credential: password === undefined ? undefined : files,
    target: join(work, "source"),
    scratch: join(work, "scratch"),
  });
}

async function failureOf(options: Options): Promise<{ code: FailureCode; message: string }> {
  const error = await fetch(options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StepError);
  return (error as StepError).failure;
}

async function serve(options: Partial<GitServerOptions> = {}): Promise<GitServer> {
  const server = await GitServer.start({ folder: repository.folder, ...options });
  servers.push(server);
  return server;
}

describe("a commit", () => {
  test("is fetched exactly, without its history and without .git", async () => {
    expect(await fetch({ commitSha: first, branch: "main" })).toEqual({
      commitSha: first,
      commitMessage: "First",
    });
    expect(await readFile(join(work, "source/index.js"), "utf8")).toBe("one");
    expect((await readdir(join(work, "source"), { recursive: true })).toSorted()).toEqual([
      "index.js",
      "src",
      "src/deep",
      "src/deep/a b.txt",
    ]);
    expect(await readdir(join(work, "scratch"))).toEqual([]);
  });

  test.each<[string, Options, () => string]>([
    ["of a branch", { branch: "main" }, () => second],
    ["of a tag", { tag: "v1.0.0" }, () => first],
  ])("%s is found", async (_, options, sha) => {
    expect(await fetch(options)).toMatchObject({ commitSha: sha() });
  });

  test("keeps its links as links, wherever they lead", async () => {
    await fetch({ branch: "main" });
    expect(await readlink(join(work, "source/outside"))).toBe("/etc/passwd");
    expect(await readlink(join(work, "source/inside"))).toBe("src/deep");
  });

  test("is found behind the tip where a server returns tips alone", async () => {
    const { url } = await serve({ isOld: true });
    expect(await fetch({ url, commitSha: first, branch: "main" })).toMatchObject({ commitSha: first });
  });
});

describe("over HTTP", () => {
  const credential = `ada:${PASSWORD}`;

  test("the credential is sent, and is nowhere else", async () => {
    const server = await serve({ credential });
    await fetch({ url: server.url, commitSha: second, password: PASSWORD });
    expect(server.requests.some(({ authorization }) => authorization !== undefined)).toBe(true);
    expect(server.requests.map(({ url }) => url).join()).not.toContain("canary");
    expect(log.join("")).not.toContain("canary");
    expect(existsSync(join(work, "source/.git"))).toBe(false);
  });

  test.each<[string, Options, FailureCode]>([
    ["a wrong credential", { password: "wrong-password" }, "GIT_REPOSITORY_AUTH_FAILED"],
    ["no credential", {}, "GIT_REPOSITORY_AUTH_FAILED"],
    [
      "a wrong token of GitHub's",
      { password: "wrong-password", provider: "github" },
      "GITHUB_REPOSITORY_AUTH_FAILED",
    ],
    ["no token of GitHub's", { provider: "github" }, "GITHUB_ACCESS_TOKEN_MISSING"],
  ])("%s", async (_, options, code) => {
    const { url } = await serve({ credential });
    const failure = await failureOf({ url, branch: "main", ...options });
    expect(failure.code).toBe(code);
    expect(failure.message).not.toContain("wrong-password");
  });

  test("a repository that does not exist", async () => {
    const { url } = await serve({ folder: `${repository.folder}-gone` });
    expect((await failureOf({ url, branch: "main" })).code).toBe("GIT_REPOSITORY_AUTH_FAILED");
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: is redirected by its server | no other
  test("nobody else is sent to, and no credential with it", async () => {
    const elsewhere = await serve();
    const server = await serve({ redirect: elsewhere.url });
    const failure = await failureOf({ url: server.url, branch: "main", password: PASSWORD });
    expect(failure.code).toBe("GIT_SERVER_UNAVAILABLE");
    expect(elsewhere.requests).toEqual([]);
  });

  test("the address that the name was resolved to is the one that is connected to", async () => {
    const { url } = await serve();
    const named = url.replace("127.0.0.1", "git.invalid");
    expect(await fetch({ url: named, branch: "main", address: "127.0.0.1" })).toMatchObject({
      commitSha: second,
    });
  });

  test("a server that is down", async () => {
    const server = await serve();
    const { url } = server;
    await server.stop();
    servers.splice(0);
    expect((await failureOf({ url, branch: "main" })).code).toBe("GIT_SERVER_UNAVAILABLE");
  });
});

describe("what is not there", () => {
  test.each<[string, Options, FailureCode]>([
    ["a commit", { commitSha: GONE, branch: "main" }, "GIT_COMMIT_UNAVAILABLE"],
    // Shows: docs/git.md#github: `GITHUB_COMMIT_UNAVAILABLE` | the commit does not exist any more
    ["a commit at GitHub", { commitSha: GONE, provider: "github" }, "GITHUB_COMMIT_UNAVAILABLE"],
    ["a branch", { branch: "gone" }, "GIT_COMMIT_UNAVAILABLE"],
    ["a tag", { tag: "--upload-pack=touch /tmp/x" }, "GIT_COMMIT_UNAVAILABLE"],
  ])("%s", async (_, options, code) => {
    const failure = await failureOf(options);
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(options.commitSha ?? options.tag ?? options.branch);
  });
});

describe("what is too large", () => {
  let large: Repository;
  beforeAll(async () => {
    large = await Repository.create();
    await large.commit("Zeros", { zeros: Buffer.alloc(3_000_000) });
    await large.git("switch", "--quiet", "--create", "noise");
    await large.commit("Noise", { noise: randomBytes(3_000_000) });
  });
  afterAll(() => large.remove());

  test("is not fetched to its end", async () => {
    const failure = await failureOf({ url: large.url, branch: "noise", maxBytes: 1_000_000 });
    expect(failure).toMatchObject({
      code: "GIT_REPOSITORY_TOO_LARGE",
      message: expect.stringContaining("1 MB"),
    });
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: has a huge file, packed small or large, or
  test("is not unpacked, however small it was packed", async () => {
    const failure = await failureOf({ url: large.url, branch: "main", maxBytes: 1_000_000 });
    expect(failure).toMatchObject({
      code: "GIT_REPOSITORY_TOO_LARGE",
      message: expect.stringContaining("3 MB"),
    });
    expect(existsSync(join(work, "source"))).toBe(false);
  });

  test("has too many files", async () => {
    expect((await failureOf({ branch: "main", maxFiles: 2 })).code).toBe("GIT_REPOSITORY_TOO_LARGE");
  });
});

describe("submodules", () => {
  /** A repository whose `vendor/lib` is this. */
  async function withSubmodule(url: string, commit = first): Promise<Repository> {
    const outer = await Repository.create();
    others.push(outer);
    await outer.git("update-index", "--add", "--cacheinfo", `160000,${commit},vendor/lib`);
    await outer.git("commit", "--quiet", "--message", "A link");
    await writeFile(
      join(outer.folder, ".gitmodules"),
      `[submodule "lib"]\n\tpath = vendor/lib\n\turl = ${url}\n`,
    );
    await outer.git("add", ".gitmodules");
    await outer.git("commit", "--quiet", "--message", "With a submodule");
    return outer;
  }
  const others: Repository[] = [];
  afterEach(async () => {
    await Promise.all(others.splice(0).map((other) => other.remove()));
  });

  test("of the same server are fetched at their commit, without the credential", async () => {
    const inner = await serve();
    const outer = await withSubmodule("../lib.git");
    // One server for both: whose path says which.
    const server = await GitServer.start({
      folder: outer.folder,
      credential: `ada:${PASSWORD}`,
      others: { "/lib.git": repository.folder },
    });
    servers.push(server);
    expect(await fetch({ url: server.url, branch: "main", password: PASSWORD })).toMatchObject({
      commitMessage: "With a submodule",
    });
    expect(await readFile(join(work, "source/vendor/lib/index.js"), "utf8")).toBe("one");
    expect(existsSync(join(work, "source/vendor/lib/.git"))).toBe(false);
    const asked = server.requests.filter(({ url }) => url.startsWith("/lib.git"));
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.every(({ authorization }) => authorization === undefined)).toBe(true);
    expect(inner.requests).toEqual([]);
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: has submodules elsewhere, in the builder's
  test.each<[string, (own: string, elsewhere: string) => string]>([
    ["at another server", (_own, elsewhere) => elsewhere],
    ["in the files of the builder", () => "file:///etc"],
    ["that is a program", () => "ext::sh -c 'touch /tmp/x'"],
    ["that is private", (own) => own.replace("repository", "private")],
    ["that leads up out of the server", () => "../../../../../etc"],
  ])("%s fail, and nobody else is asked", async (_, urlOf) => {
    const elsewhere = await serve();
    const folder = { folder: "" };
    const server = await GitServer.start({
      get folder() {
        return folder.folder;
      },
      others: { "/private.git": `${repository.folder}-gone` },
    });
    servers.push(server);
    folder.folder = (await withSubmodule(urlOf(server.url, elsewhere.url))).folder;
    const failure = await failureOf({ url: server.url, branch: "main" });
    expect(failure.code).toBe("GIT_SUBMODULE_UNAVAILABLE");
    expect(failure.message).toContain("`vendor/lib`");
    expect(elsewhere.requests).toEqual([]);
  });

  test("that nothing names, or whose commit no longer exists, fail", async () => {
    const nameless = await Repository.create();
    others.push(nameless);
    await nameless.git("update-index", "--add", "--cacheinfo", `160000,${first},vendor/lib`);
    await nameless.git("commit", "--quiet", "--message", "A link alone");
    expect((await failureOf({ url: nameless.url, branch: "main" })).code).toBe("GIT_SUBMODULE_UNAVAILABLE");
    const outer = await withSubmodule("../lib.git", GONE);
    const server = await GitServer.start({ folder: outer.folder, others: { "/lib.git": repository.folder } });
    servers.push(server);
    expect((await failureOf({ url: server.url, branch: "main" })).message).toContain("has not the commit");
  });

  test.each([
    ["../lib.git", "https://git.example:8443/team/lib.git"],
    ["./lib", "https://git.example:8443/team/app.git/lib"],
    ["https://git.example:8443/a/b.git", "https://git.example:8443/a/b.git"],
    ["https://ada:secret@git.example:8443/a/b.git", "https://git.example:8443/a/b.git"],
    ["git@git.example:a/b.git", "https://git.example:8443/a/b.git"],
    ["ssh://git@git.example:22/a/b.git", "https://git.example:8443/a/b.git"],
    ["https://git.example/a/b.git", undefined],
    ["http://git.example:8443/a/b.git", undefined],
    ["git@other.example:a/b.git", undefined],
    ["//169.254.169.254/a", undefined],
    ["--upload-pack=id", undefined],
  ])("%s is at %s", (said, address) => {
    expect(ownAddress(said, "https://git.example:8443/team/app.git")).toBe(address);
  });
});

test("a tree is read as git lists it", () => {
  const lines = [
    "100644 blob 0a1b      12\ta b",
    "120000 blob 0a1c       9\tlink",
    "160000 commit 0a1d       -\tsub",
    "",
  ];
  const text = lines.join("\0");
  expect(parseTree(text)).toEqual([
    { mode: "100644", type: "blob", size: 12, path: "a b", id: "0a1b" },
    { mode: "120000", type: "blob", size: 9, path: "link", id: "0a1c" },
    { mode: "160000", type: "commit", size: 0, path: "sub", id: "0a1d" },
  ]);
});

test("a pointer to a large file is distinguished from other files", () => {
  const oid = "a".repeat(64);
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize 12345\n`;
  expect(readPointer(pointer)).toEqual({ oid, size: 12_345 });
  expect(readPointer(`# ${pointer}`)).toBeUndefined();
  expect(readPointer("")).toBeUndefined();
});
