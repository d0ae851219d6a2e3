import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGitea, type TestGitea } from "../../../../test/kit/servers/gitea.ts";
import { type GitEvent, isSigned, readDelivery } from "../delivery/read.ts";
import { SsrfSafeFetch } from "../net/fetch.ts";
import { ForgejoClient } from "./client.ts";

/** The client against a real Gitea. */

interface Received {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

const SECRET = "hook-secret";
const PATH = "slipway/sample-node";
let gitea: TestGitea;
let fetch: SsrfSafeFetch;
let id: string;
const received: Received[] = [];
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    received.push({ headers: request.headers, body: Buffer.concat(chunks) });
    response.end();
  });
});
let hook: string;

beforeAll(async () => {
  gitea = await startGitea();
  fetch = new SsrfSafeFetch({ allowedHosts: [gitea.host], ca: gitea.ca });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  id = (await client().resolve(PATH)).id;
});
afterAll(async () => {
  receiver.closeAllConnections();
  receiver.close();
  await fetch?.close();
  await gitea?.stop();
});

function client(change: { username?: string; token?: string } = {}): ForgejoClient {
  const { url: instanceUrl, username, token } = gitea;
  return new ForgejoClient({ fetch, instanceUrl, username, token, ...change });
}

async function file(path: string, branch = "main", date = new Date().toISOString()): Promise<string> {
  const { body } = await gitea.call("POST", `/repos/${PATH}/contents/${path}`, {
    branch,
    dates: { author: date, committer: date },
    message: `Add ${path}\n\nMore of it.`,
    content: Buffer.from(path).toString("base64"),
  });
  return (body as { commit: { sha: string } }).commit.sha;
}

const failing = (code: string) => expect.objectContaining({ name: "GitError", code });

describe("a credential", () => {
  it("of the user is accepted, and has all capabilities", async () => {
    expect(await client().check()).toEqual({
      repositoryDiscovery: true,
      pushDeploy: true,
      nativePreviews: false,
      versionDeploy: true,
    });
  });

  it("that is wrong is refused", async () => {
    await expect(client({ token: "0".repeat(40) }).check()).rejects.toEqual(failing("CredentialRefused"));
  });

  // Shows: docs/git.md#over-v1: 400 `GIT_CREDENTIAL_REFUSED` | the server does not accept the token, or
  it("under another user's name is refused", async () => {
    await expect(client({ username: "somebody" }).check()).rejects.toEqual(failing("CredentialRefused"));
  });

  it("with rights over repositories alone lists none, but resolves them", async () => {
    const limited = client({ token: await gitea.limitedToken("read:repository") });
    expect(await limited.check()).toMatchObject({ repositoryDiscovery: false, pushDeploy: true });
    expect(await limited.resolve(PATH)).toMatchObject({ id, path: PATH });
    await expect(limited.repositories()).rejects.toEqual(failing("CapabilityUnavailable"));
    const wish = { url: hook, secret: SECRET };
    await expect(limited.ensureHook(id, wish)).rejects.toEqual(failing("PermissionLacking"));
  });
});

describe("a repository", () => {
  it("is found by its path and by its id", async () => {
    const found = await client().resolve(PATH);
    expect(found).toEqual({
      id,
      path: PATH,
      defaultBranch: "main",
      private: true,
      webUrl: `${gitea.url}/${PATH}`,
    });
    expect(await client().repository(id)).toEqual(found);
  });

  it.each(["slipway/none", "nobody/none", "slipway", "../admin/users", "slipway/sample-node/hooks"])(
    "is not found as %s",
    async (path) => {
      await expect(client().resolve(path)).rejects.toEqual(failing("RepositoryNotFound"));
    },
  );

  // Shows: docs/git.md#over-v1: `GET /v1/git/connections/:connectionId/repositories` | `repositories`
  it("is among those that are listed, page by page", async () => {
    for (let index = 0; index < 51; index += 1) {
      await gitea.call("POST", "/user/repos", { name: `many-${index}` });
    }
    const first = await client().repositories();
    expect(first.items).toHaveLength(50);
    const second = await client().repositories(first.nextCursor);
    expect(second.nextCursor).toBeUndefined();
    const paths = [...first.items, ...second.items].map(({ path }) => path);
    expect(new Set(paths).size).toBe(52);
    expect(paths).toContain(PATH);
  });

  // Shows: docs/git.md#over-v1: 404 `GIT_REF_NOT_FOUND` | no such branch, tag or commit
  it("has branches, tags, releases and commits", async () => {
    const sha = await file("one.txt");
    await gitea.call("POST", `/repos/${PATH}/branches`, {
      new_branch_name: "feature/x",
      old_ref_name: "main",
    });
    await gitea.call("POST", `/repos/${PATH}/tags`, {
      tag_name: "v0.1.0",
      target: "main",
      message: "annotated",
    });
    await gitea.call("POST", `/repos/${PATH}/releases`, {
      tag_name: "v0.2.0",
      target_commitish: "main",
      prerelease: true,
    });
    const former = await file("former.txt", "feature/x", "2020-01-01T00:00:00Z");
    await gitea.call("POST", `/repos/${PATH}/tags`, { tag_name: "former", target: "feature/x" });
    const one = client();
    expect(await one.branches(id)).toEqual(
      expect.arrayContaining([
        { name: "main", commitSha: sha },
        { name: "feature/x", commitSha: former },
      ]),
    );
    // Of an annotated tag the commit, not the tag's own object.
    // The newest first.
    expect(await one.tags(id)).toEqual([
      { name: "v0.1.0", commitSha: sha },
      { name: "v0.2.0", commitSha: sha },
      { name: "former", commitSha: former },
    ]);
    expect(await one.releases(id)).toEqual([
      {
        id: expect.any(String),
        tag: "v0.2.0",
        draft: false,
        prerelease: true,
        publishedAt: expect.any(String),
      },
    ]);
    for (const ref of ["main", "v0.1.0", sha, sha.slice(0, 10)]) {
      expect(await one.commit(id, ref)).toEqual({ sha, title: "Add one.txt" });
    }
    expect(await one.commit(id, "feature/x")).toEqual({ sha: former, title: "Add former.txt" });
    await expect(one.commit(id, "no-such-branch")).rejects.toEqual(failing("RefNotFound"));
  });

  // Shows: docs/git.md#over-v1: 404 `GIT_REF_NOT_FOUND` | no such branch, tag or commit
  it("that is empty has no commit, no branch and no tag, until its first push", async () => {
    const { body } = await gitea.call("POST", "/user/repos", { name: "empty" });
    const { id: number, full_name: path } = body as { id: number; full_name: string };
    const one = client();
    expect([await one.branches(String(number)), await one.tags(String(number))]).toEqual([[], []]);
    await expect(one.commit(String(number), "main")).rejects.toEqual(failing("RefNotFound"));
    const made = await gitea.call("POST", `/repos/${path}/contents/one.txt`, {
      branch: "main",
      message: "First",
      content: Buffer.from("one").toString("base64"),
    });
    const { commit } = made.body as { commit: { sha: string } };
    // The server may count it as empty for a while longer.
    await expect
      .poll(() => one.commit(String(number), "main").catch(String), { timeout: 60_000 })
      .toEqual({ sha: commit.sha, title: "First" });
  });

  it("is cloned from the instance's own address", async () => {
    const { username, token } = gitea;
    expect(await client().clone(id)).toEqual({ url: `${gitea.url}/${PATH}.git`, username, password: token });
  });
});

describe("a hook", () => {
  const about = (what: string) => received.filter(({ body }) => body.includes(what));

  /** Events of a commit or tag, oldest first, once so many deliveries have come: those of earlier pushes may be late. */
  async function eventsAbout(what: string, deliveries: number): Promise<GitEvent[]> {
    await expect.poll(() => about(what).length).toBeGreaterThanOrEqual(deliveries);
    return about(what).flatMap(({ headers, body }) => {
      expect(isSigned(SECRET, body, headers)).toBe(true);
      return readDelivery(headers, JSON.parse(body.toString())).event ?? [];
    });
  }
  const kinds = (events: GitEvent[]) => events.map(({ kind }) => kind).sort();

  it("exists once, however often it is requested", async () => {
    await client().ensureHook(id, { url: hook, secret: "old" });
    const newest = await client().ensureHook(id, { url: hook, secret: SECRET });
    const { body } = await gitea.call("GET", `/repos/${PATH}/hooks`);
    expect(body).toEqual([expect.objectContaining({ id: Number(newest.id), active: true })]);
  });

  it("reports pushes, signed with the newest secret", async () => {
    const commitSha = await file("two.txt");
    expect(await eventsAbout(commitSha, 1)).toEqual([
      { kind: "push", repository: id, path: PATH, branch: "main", commitSha },
    ]);
    const [delivery] = about(commitSha);
    expect(isSigned("old", delivery?.body ?? Buffer.of(), delivery?.headers ?? {})).toBe(false);
  });

  it("reports a tag once, and a release once", async () => {
    const { body } = await gitea.call("GET", `/repos/${PATH}/branches/main`);
    const commitSha = (body as { commit: { id: string } }).commit.id;
    await gitea.call("POST", `/repos/${PATH}/tags`, { tag_name: "v1.0.0", target: "main" });
    const tag = { kind: "tag", repository: id, path: PATH, tag: "v1.0.0", commitSha };
    // The tag's push beside it says nothing.
    expect(await eventsAbout("v1.0.0", 2)).toEqual([tag]);
    await gitea.call("POST", `/repos/${PATH}/releases`, { tag_name: "v1.1.0", target_commitish: "main" });
    const events = await eventsAbout("v1.1.0", 3);
    expect(kinds(events)).toEqual(["release", "tag"]);
    expect(events).toContainEqual({
      kind: "release",
      repository: id,
      path: PATH,
      tag: "v1.1.0",
      draft: false,
      prerelease: false,
    });
    await gitea.call("DELETE", `/repos/${PATH}/tags/v1.0.0`);
    expect(await eventsAbout("v1.0.0", 3)).toEqual([tag]);
  });

  it("is deleted, and deleting it again is no failure", async () => {
    await client().removeHooks(id, hook);
    await client().removeHooks(id, hook);
    const { body } = await gitea.call("GET", `/repos/${PATH}/hooks`);
    expect(body).toEqual([]);
  });

  it("of a deleted repository is deleted", async () => {
    const { body } = await gitea.call("POST", "/user/repos", { name: "short-lived" });
    const gone = String((body as { id: number }).id);
    await client().ensureHook(gone, { url: hook, secret: SECRET });
    await gitea.call("DELETE", "/repos/slipway/short-lived");
    await client().removeHooks(gone, hook);
  });
});

it("a repository that was renamed keeps its id", async () => {
  const { body } = await gitea.call("POST", "/user/repos", {
    name: "before",
    auto_init: true,
    default_branch: "main",
  });
  const renamed = String((body as { id: number }).id);
  const one = client();
  expect(await one.repository(renamed)).toMatchObject({ path: "slipway/before" });
  await gitea.call("PATCH", "/repos/slipway/before", { name: "after" });
  // The path that it remembers answers a redirect.
  expect((await one.branches(renamed)).map(({ name }) => name)).toEqual(["main"]);
  expect(await client().repository(renamed)).toMatchObject({ path: "slipway/after" });
});
