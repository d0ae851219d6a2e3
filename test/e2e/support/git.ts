/** Repositories on the stack's own Git server, as their owner uses them. */
import { readFileSync } from "node:fs";
import { Agent, request } from "undici";
import { expect } from "vitest";
import { stack } from "./stack.ts";

const agent = new Agent({ connect: { ca: readFileSync(stack.git.caFile, "utf8") } });

/** Calls the Git server's API as the stack's user. @throws for another status than those of success */
async function api<T>(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<T> {
  const answer = await request(`${stack.git.url}/api/v1${path}`, {
    method,
    dispatcher: agent,
    headers: { authorization: `token ${stack.git.token}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) {
    throw new Error(`${method} ${path} answered ${answer.statusCode}: ${text}`);
  }
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Content of files by path; undefined deletes one. */
export type Files = Readonly<Record<string, string | undefined>>;

/** A private repository of the stack's user, branch `main`. */
export interface Repository {
  readonly name: string;
  /** `owner/name`. */
  readonly path: string;
  /** Commits files to `main`. @returns the commit's hash */
  commit(files: Files, message?: string): Promise<string>;
  /** Makes a branch at the end of `main`. */
  branch(name: string): Promise<unknown>;
  tag(name: string): Promise<unknown>;
  release(tag: string, flags?: { draft?: boolean; prerelease?: boolean }): Promise<unknown>;
  hooks(): Promise<readonly { id: number; active: boolean; config: { url: string } }[]>;
  remove(): Promise<unknown>;
}

/** Makes a repository with these files. */
export async function createRepository(name: string, files: Files): Promise<Repository> {
  const path = `${stack.git.username}/${name}`;
  const at = `/repos/${path}`;
  await api("POST", "/user/repos", { name, private: true, auto_init: true, default_branch: "main" });
  const known = new Map<string, string>();

  const commit = async (changed: Files, message = "Change") => {
    const operations = Object.entries(changed).map(([file, content]) => {
      const sha = known.get(file);
      const operation = content === undefined ? "delete" : sha === undefined ? "create" : "update";
      return { operation, path: file, sha, content: Buffer.from(content ?? "").toString("base64") };
    });
    const { commit: made, files: written } = await api<{
      commit: { sha: string };
      files: ({ path: string; sha: string } | null)[];
    }>("POST", `${at}/contents`, { branch: "main", message, files: operations });
    for (const file of written) {
      if (file) {
        known.set(file.path, file.sha);
      }
    }
    return made.sha;
  };
  await commit(files, "Begin");
  return {
    name,
    path,
    commit,
    branch: (new_branch_name) => api("POST", `${at}/branches`, { new_branch_name, old_ref_name: "main" }),
    tag: (tag_name) => api("POST", `${at}/tags`, { tag_name, target: "main" }),
    release: (tag_name, flags = {}) =>
      api("POST", `${at}/releases`, { tag_name, target_commitish: "main", name: tag_name, ...flags }),
    hooks: () => api("GET", `${at}/hooks`),
    remove: () => api("DELETE", at),
  };
}

/** Deletes a repository, if there is one. @param path `owner/name` */
export async function removeRepository(path: string): Promise<void> {
  await api("DELETE", `/repos/${path}`).catch((error: Error) => {
    if (!error.message.includes(" answered 404: ")) {
      throw error;
    }
  });
}

/** Who makes connections: an owner by their token. */
export interface Owner {
  readonly organization: string;
  readonly token: string;
}
const stackOwner: Owner = { organization: stack.organization, token: stack.ownerToken };

/** A connection of an organization, the stack's own unless given, to the stack's Git server, and a repository's id over it. */
export async function connectRepository(
  { path }: Repository,
  owner: Owner = stackOwner,
): Promise<{ connectionId: string; repositoryId: string }> {
  const connection = {
    provider_id: "forgejo",
    instance_url: stack.git.url,
    display_name: "The stack's own",
    repository_path: path,
    username: stack.git.username,
    token: stack.git.token,
  };
  const made = await asOwner<{ connection: { id: string } }>(
    "POST",
    "/v1/git/connections",
    connection,
    owner,
  );
  const connectionId = made.connection.id;
  const { id } = await asOwner<{ id: string }>(
    "POST",
    `/v1/git/connections/${connectionId}/repositories/resolve`,
    { path },
    owner,
  );
  return { connectionId, repositoryId: id };
}

/** Calls `/v1` as an organization's owner. @throws for another status than those of success */
export async function asOwner<T>(
  method: "GET" | "POST" | "DELETE",
  path: string,
  body?: object,
  { organization, token }: Owner = stackOwner,
): Promise<T> {
  const answer = await fetch(`${stack.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      "x-organization-id": organization,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const said = (await answer.json()) as { data: T };
  expect(answer.status, JSON.stringify(said)).toBeLessThan(300);
  return said.data;
}
