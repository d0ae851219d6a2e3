import { generateKeyPairSync } from "node:crypto";
import { decodeProtectedHeader, importSPKI, jwtVerify } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startHttpsServer, type TestServer } from "../../../../test/kit/git/https-server.ts";
import { SsrfSafeFetch } from "../net/fetch.ts";
import { GithubClient } from "./client.ts";

/** The client against GitHub's contract, as its documentation states it: no GitHub is available here. */

const keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
const privateKey = keys.privateKey.export({ type: "pkcs1", format: "pem" }) as string;
const publicKey = keys.publicKey.export({ type: "spki", format: "pem" }) as string;
const SHA = "7fd1a60b01f91b314f59955a4e4d4e80d8edf11d";
const repository = {
  id: 1296269,
  full_name: "octocat/Hello-World",
  default_branch: "main",
  private: true,
  html_url: "https://github.com/octocat/Hello-World",
  owner: { login: "octocat" },
};

interface Asked {
  line: string;
  authorization: string;
  version: string;
  body: unknown;
}

/** What GitHub answers, by method and path; a function sees the request. */
type Contract = Record<string, { status?: number; body?: unknown; headers?: Record<string, string> }>;
const usual: Contract = {
  "POST /app/installations/5/access_tokens": {
    status: 201,
    body: { token: "ghs_one", expires_at: "2026-11-21T13:00:00Z", permissions: { contents: "read" } },
  },
  "GET /installation/repositories?page=1&per_page=1": {
    body: { total_count: 51, repositories: [repository] },
  },
  "GET /installation/repositories?page=1&per_page=50": {
    body: { total_count: 51, repositories: [repository] },
  },
  "GET /installation/repositories?page=2&per_page=50": {
    body: { total_count: 51, repositories: [repository] },
  },
  "GET /repos/octocat/Hello-World": { body: repository },
  "GET /repositories/1296269": { body: repository },
  "GET /repos/octocat/Hello-World/branches?page=1&per_page=50": {
    body: [{ name: "feature/x", commit: { sha: SHA, url: "" }, protected: false }],
  },
  "GET /repos/octocat/Hello-World/tags?page=1&per_page=50": {
    body: [{ name: "v0.1", commit: { sha: SHA, url: "" }, zipball_url: "" }],
  },
  "GET /repos/octocat/Hello-World/releases?page=1&per_page=50": {
    body: [{ id: 1, tag_name: "v0.1", draft: true, prerelease: false, published_at: null }],
  },
  "GET /repos/octocat/Hello-World/commits/feature%2Fx": {
    body: { sha: SHA, commit: { message: "Fix all the bugs\n\nAll." } },
  },
  "GET /repos/octocat/Hello-World/commits/none": { status: 422, body: { message: "No commit found" } },
  "GET /repos/octocat/Hello-World/hooks?page=1&per_page=50": { body: [] },
  "POST /repos/octocat/Hello-World/hooks": { status: 201, body: { id: 12, config: { url: "https://s/h" } } },
};

let contract: Contract;
let asked: Asked[];
let server: TestServer;
let fetch: SsrfSafeFetch;
let now: Date;
beforeAll(async () => {
  server = await startHttpsServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const line = `${request.method} ${request.url}`;
      const text = Buffer.concat(chunks).toString();
      const { authorization = "" } = request.headers;
      const version = String(request.headers["x-github-api-version"]);
      asked.push({ line, authorization, version, body: text === "" ? undefined : JSON.parse(text) });
      const {
        status = 200,
        body,
        headers = {},
      } = contract[line] ?? { status: 404, body: { message: "Not Found" } };
      response.writeHead(status, headers).end(body === undefined ? "" : JSON.stringify(body));
    });
  });
  fetch = new SsrfSafeFetch({ ca: server.ca, allowedHosts: [server.host] });
});
afterAll(async () => {
  await fetch.close();
  await server.close();
});
beforeEach(() => {
  contract = { ...usual };
  asked = [];
  now = new Date("2026-11-21T12:00:00Z");
});

const client = () => {
  const app = { apiUrl: server.url, cloneUrl: "https://github.com", appId: "42", privateKey };
  return new GithubClient({ fetch, app, installationId: "5", now: () => now });
};
const failing = (code: string) => expect.objectContaining({ name: "GitError", code });
const lines = () => asked.map(({ line }) => line);

describe("tokens", () => {
  it("are requested as the App, and used until they expire", async () => {
    const one = client();
    await one.check();
    await Promise.all([one.resolve("octocat/Hello-World"), one.repository("1296269")]);
    const tokens = () => lines().filter((line) => line.endsWith("access_tokens")).length;
    expect(tokens()).toBe(1);
    expect(asked.slice(1).map(({ authorization }) => authorization)).toEqual(Array(3).fill("Bearer ghs_one"));
    expect(new Set(asked.map(({ version }) => version))).toEqual(new Set(["2022-11-28"]));

    const jwt = asked[0]?.authorization.replace("Bearer ", "") ?? "";
    const { payload } = await jwtVerify(jwt, await importSPKI(publicKey, "RS256"), { currentDate: now });
    expect(decodeProtectedHeader(jwt).alg).toBe("RS256");
    expect(payload.iss).toBe("42");
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBeLessThanOrEqual(600);

    now = new Date("2026-11-21T12:56:00Z");
    await one.check();
    expect(tokens()).toBe(2);
  });

  it("are requested again once one is rejected", async () => {
    const one = client();
    await one.check();
    contract["GET /repos/octocat/Hello-World"] = { status: 401, body: { message: "Bad credentials" } };
    await expect(one.resolve("octocat/Hello-World")).rejects.toEqual(failing("CredentialRefused"));
    await one.check();
    expect(lines().filter((line) => line.endsWith("access_tokens"))).toHaveLength(2);
  });

  it("are refused once the App is not installed any more", async () => {
    delete contract["POST /app/installations/5/access_tokens"];
    await expect(client().check()).rejects.toEqual(failing("CredentialRefused"));
  });
});

describe("an installation", () => {
  it("lists its repositories page by page", async () => {
    const one = client();
    const first = await one.repositories();
    expect(first.items).toEqual([
      {
        id: "1296269",
        path: "octocat/Hello-World",
        defaultBranch: "main",
        private: true,
        webUrl: "https://github.com/octocat/Hello-World",
      },
    ]);
    expect((await one.repositories(first.nextCursor)).nextCursor).toBeUndefined();
  });

  it("shows branches, tags, releases and commits", async () => {
    const one = client();
    expect(await one.branches("1296269")).toEqual([{ name: "feature/x", commitSha: SHA }]);
    expect(await one.tags("1296269")).toEqual([{ name: "v0.1", commitSha: SHA }]);
    expect(await one.releases("1296269")).toEqual([{ id: "1", tag: "v0.1", draft: true, prerelease: false }]);
    expect(await one.commit("1296269", "feature/x")).toEqual({ sha: SHA, title: "Fix all the bugs" });
    await expect(one.commit("1296269", "none")).rejects.toEqual(failing("RefNotFound"));
    await expect(one.resolve("octocat/none")).rejects.toEqual(failing("RepositoryNotFound"));
  });

  it("is cloned from with a token of its own, which reads the one repository", async () => {
    expect(await client().clone("1296269")).toEqual({
      url: "https://github.com/octocat/Hello-World.git",
      username: "x-access-token",
      password: "ghs_one",
    });
    expect(asked.at(-1)).toMatchObject({
      line: "POST /app/installations/5/access_tokens",
      body: { repository_ids: [1296269], permissions: { contents: "read" } },
    });
  });

  it("is of an account", async () => {
    contract["GET /app/installations/5"] = {
      body: { id: 5, account: { login: "octocat" }, suspended_at: null },
    };
    expect(await client().account()).toEqual({ login: "octocat" });
    contract["GET /app/installations/5"] = {
      body: { id: 5, account: { login: "octocat" }, suspended_at: "2026-01-01T00:00:00Z" },
    };
    await expect(client().account()).rejects.toEqual(failing("CredentialRefused"));
    delete contract["GET /app/installations/5"];
    await expect(client().account()).rejects.toEqual(failing("CredentialRefused"));
  });

  it.each([
    ["suspended", 403],
    ["narrowed", 422],
    ["removed", 404],
  ])("that was %s gives out no token", async (_, status) => {
    contract["POST /app/installations/5/access_tokens"] = { status, body: { message: "no" } };
    await expect(client().clone("1296269")).rejects.toEqual(failing("CredentialRefused"));
  });

  it.each([
    [401, {}, "CredentialRefused"],
    [403, {}, "PermissionLacking"],
    [403, { "x-github-sso": "required; url=https://github.com/orgs/o/sso" }, "CredentialRefused"],
    [403, { "x-ratelimit-remaining": "0" }, "ProviderUnavailable"],
    [429, {}, "ProviderUnavailable"],
    [502, {}, "ProviderUnavailable"],
  ])("that answers %i %j fails with %s", async (status, headers, code) => {
    contract["GET /repos/octocat/Hello-World"] = {
      status,
      headers: headers as Record<string, string>,
      body: {},
    };
    await expect(client().resolve("octocat/Hello-World")).rejects.toEqual(failing(code));
  });

  it("that answers something else is not understood", async () => {
    contract["GET /repos/octocat/Hello-World"] = { body: { id: "x" } };
    await expect(client().resolve("octocat/Hello-World")).rejects.toEqual(failing("ProviderUnavailable"));
  });
});

describe("a hook", () => {
  const hooks = "GET /repos/octocat/Hello-World/hooks?page=1&per_page=50";
  const wish = { url: "https://s/h", secret: "one" };

  it("is made where there is none", async () => {
    expect(await client().ensureHook("1296269", wish)).toEqual({ id: "12" });
    expect(asked.at(-1)).toMatchObject({
      line: "POST /repos/octocat/Hello-World/hooks",
      body: { name: "web", events: ["push", "create", "release"], config: { url: wish.url, secret: "one" } },
    });
  });

  it("is updated where one exists, and deleted", async () => {
    contract[hooks] = {
      body: [
        { id: 12, config: { url: wish.url } },
        { id: 13, config: { url: "https://other" } },
      ],
    };
    contract["PATCH /repos/octocat/Hello-World/hooks/12"] = { body: { id: 12, config: { url: wish.url } } };
    contract["DELETE /repos/octocat/Hello-World/hooks/12"] = { status: 204 };
    expect(await client().ensureHook("1296269", wish)).toEqual({ id: "12" });
    await client().removeHooks("1296269", wish.url);
    expect(lines().filter((line) => /^(PATCH|DELETE)/.test(line))).toEqual([
      "PATCH /repos/octocat/Hello-World/hooks/12",
      "DELETE /repos/octocat/Hello-World/hooks/12",
    ]);
  });
});
