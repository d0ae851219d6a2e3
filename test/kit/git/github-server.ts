/** A fake of GitHub with one App, which answers as GitHub's documentation describes. */

import { generateKeyPairSync } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { GithubApp } from "../../../packages/git/src/github/tokens.ts";
import { startHttpsServer } from "./https-server.ts";

export interface GithubRepository {
  id: number;
  full_name: string;
  /** Commits by branch. */
  branches: Record<string, string>;
  /** Commits by tag. */
  tags: Record<string, string>;
  /** URLs of hooks by id, and what they were made with. */
  hooks: Map<number, { url: string; secret: string }>;
}

export interface GithubServer {
  url: string;
  /** `localhost:port`, as configuration allows it. */
  host: string;
  /** PEM of the authority that certifies it. */
  ca: string;
  /** The App as the platform knows it. */
  app: GithubApp;
  /** Account of the one installation, whose number is 5. */
  login: string;
  /** What the installation grants. */
  repositories: GithubRepository[];
  /** The installation as its owner has left it. */
  state: "installed" | "suspended" | "removed" | "sso";
  /** Bodies of the requests for tokens, as JSON. */
  minted: unknown[];
  close: () => Promise<void>;
}

const INSTALLATION = "/app/installations/5";
const commitOf = (sha: string) => ({ sha, commit: { message: `Commit ${sha.slice(0, 7)}\n\nMore.` } });

export async function startGithub(): Promise<GithubServer> {
  const server = await startHttpsServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      answer(github, request, text === "" ? undefined : JSON.parse(text), response);
    });
  });
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const github: GithubServer = {
    url: server.url,
    host: server.host,
    ca: server.ca,
    app: {
      appId: "42",
      apiUrl: server.url,
      cloneUrl: server.url,
      privateKey: privateKey.export({ type: "pkcs1", format: "pem" }) as string,
    },
    login: "octocat",
    repositories: [],
    state: "installed",
    minted: [],
    close: server.close,
  };
  return github;
}

interface Answer {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

const missing: Answer = { status: 404, body: { message: "Not Found" } };

function answer(
  github: GithubServer,
  request: IncomingMessage,
  body: unknown,
  response: ServerResponse,
): void {
  const { pathname } = new URL(request.url ?? "", github.url);
  const method = request.method ?? "";
  const given = pathname.startsWith("/app/")
    ? ofApp(github, method, pathname, body)
    : ofInstallation(github, request, pathname, body);
  response
    .writeHead(given.status, given.headers)
    .end(given.body === undefined ? "" : JSON.stringify(given.body));
}

function ofApp(github: GithubServer, method: string, path: string, body: unknown): Answer {
  if (github.state === "removed" || !path.startsWith(INSTALLATION)) {
    return missing;
  }
  const isSuspended = github.state === "suspended";
  if (method === "GET" && path === INSTALLATION) {
    const suspended_at = isSuspended ? "2026-01-01T00:00:00Z" : null;
    return { status: 200, body: { id: 5, account: { login: github.login }, suspended_at } };
  }
  if (method !== "POST" || path !== `${INSTALLATION}/access_tokens`) {
    return missing;
  }
  if (isSuspended) {
    return { status: 403, body: { message: "This installation has been suspended" } };
  }
  github.minted.push(body);
  const token = `ghs_${github.minted.length}`;
  return {
    status: 201,
    body: { token, expires_at: "2999-01-01T00:00:00Z", permissions: { contents: "read" } },
  };
}

function ofInstallation(github: GithubServer, request: IncomingMessage, path: string, body: unknown): Answer {
  if (github.state === "suspended") {
    return { status: 403, body: { message: "This installation has been suspended" } };
  }
  if (github.state === "removed" || !/^Bearer ghs_[0-9]+$/.test(request.headers.authorization ?? "")) {
    return { status: 401, body: { message: "Bad credentials" } };
  }
  if (github.state === "sso") {
    const headers = { "x-github-sso": "required; url=https://github.com/orgs/octocat/sso" };
    return {
      status: 403,
      headers,
      body: { message: "Resource protected by organization SAML enforcement." },
    };
  }
  const { repositories } = github;
  if (path === "/installation/repositories") {
    return { status: 200, body: { total_count: repositories.length, repositories: repositories.map(shown) } };
  }
  const [, byId] = /^\/repositories\/([0-9]+)$/.exec(path) ?? [];
  const [, owner, name, rest = ""] = /^\/repos\/([^/]+)\/([^/]+)(?:\/(.*))?$/.exec(path) ?? [];
  const full = `${owner}/${name}`.toLowerCase();
  const found = repositories.find(
    ({ id, full_name }) => String(id) === byId || full_name.toLowerCase() === full,
  );
  if (!found) {
    return missing;
  }
  if (rest === "") {
    return { status: 200, body: shown(found) };
  }
  return ofRepository(found, request.method ?? "", rest, body);
}

const shown = ({ id, full_name }: GithubRepository) => ({
  id,
  full_name,
  default_branch: "main",
  private: true,
  html_url: `https://github.com/${full_name}`,
});

function ofRepository(repository: GithubRepository, method: string, path: string, body: unknown): Answer {
  const { branches, tags, hooks } = repository;
  const refs = (of: Record<string, string>) => ({
    status: 200,
    body: Object.entries(of).map(([name, sha]) => ({ name, commit: { sha } })),
  });
  if (path === "branches") {
    return refs(branches);
  }
  if (path === "tags") {
    return refs(tags);
  }
  if (path === "releases") {
    return { status: 200, body: [] };
  }
  if (path.startsWith("commits/")) {
    const ref = decodeURIComponent(path.slice("commits/".length));
    const known = [...Object.values(branches), ...Object.values(tags)];
    const sha = branches[ref] ?? tags[ref] ?? known.find((one) => one === ref);
    return sha === undefined
      ? { status: 422, body: { message: `No commit found for SHA: ${ref}` } }
      : { status: 200, body: commitOf(sha) };
  }
  const [, id] = /^hooks(?:\/([0-9]+))?$/.exec(path) ?? [];
  if (path === "hooks" && method === "GET") {
    return { status: 200, body: [...hooks].map(([id, { url }]) => ({ id, config: { url } })) };
  }
  if (id !== undefined && method === "DELETE") {
    return hooks.delete(Number(id)) ? { status: 204 } : missing;
  }
  if (!path.startsWith("hooks") || (method !== "POST" && method !== "PATCH")) {
    return missing;
  }
  const { config } = body as { config: { url: string; secret: string } };
  const made = id === undefined ? Math.max(0, ...hooks.keys()) + 1 : Number(id);
  hooks.set(made, { url: config.url, secret: config.secret });
  return { status: id === undefined ? 201 : 200, body: { id: made, config: { url: config.url } } };
}
