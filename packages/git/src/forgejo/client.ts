/** Forgejo and Gitea, through their API v1. */

import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import { GitError } from "../errors.ts";
import { cursorOf, JsonApi, PAGE_SIZE, pageOf, readAll } from "../json-api.ts";
import type { SsrfSafeFetch } from "../net/fetch.ts";
import {
  type Branch,
  type Capabilities,
  type CloneAccess,
  type Commit,
  type CommitOptions,
  type GitProvider,
  type Hook,
  type HookOptions,
  type Page,
  REPOSITORY_PATH,
  type Release,
  type Repository,
  type Tag,
} from "../provider.ts";
import * as schemas from "./schemas.ts";

export interface ForgejoOptions {
  fetch: SsrfSafeFetch;
  /** Canonical: see `canonicalInstanceUrl`. */
  instanceUrl: string;
  username: string;
  /** A personal access token, or the user's password. */
  token: string;
  emptyRetries?: EmptyRetries;
}

interface EmptyRetries {
  pausesMs: readonly number[];
  /** After the first answer, answers to what is asked again included. */
  withinMs: number;
}

/** Events that hooks ask for. */
const EVENTS = ["push", "create", "release"];

const noRepository = () => new GitError("RepositoryNotFound", "the credential sees no such repository");
const noRef = () => new GitError("RefNotFound", "the repository has no such branch, tag or commit");

/** Gitea counts a repository as empty until a while after its first push: then it is asked again, however slowly it answers. */
const EMPTY_RETRIES: EmptyRetries = { pausesMs: [200, 400, 800, 1_000], withinMs: 3_000 };

/** Names that are longer than any that is built from are left out. */
const named = (name: string | undefined, commitSha: string) =>
  name === undefined ? [] : [{ name, commitSha }];

export class ForgejoClient implements GitProvider {
  readonly #api: JsonApi;
  readonly #options: ForgejoOptions;
  /** Paths by id: every route but one needs the path. A renamed repository answers a redirect to the same origin. */
  readonly #known = new Map<string, schemas.ApiRepository>();

  constructor(options: ForgejoOptions) {
    const { fetch, instanceUrl, username, token } = options;
    this.#options = options;
    // Basic takes a token in the password's place, too, and holds the name to it.
    const authorization = `Basic ${Buffer.from(`${username}:${token}`).toString("base64")}`;
    this.#api = new JsonApi({ fetch, base: `${instanceUrl}/api/v1`, headers: () => ({ authorization }) });
  }

  async check(): Promise<Capabilities> {
    const { username } = this.#options;
    let isVisible = true;
    try {
      const { login } = await this.#api.request("/user", schemas.user);
      if (login.toLowerCase() !== username.toLowerCase()) {
        throw new GitError("CredentialRefused", `the credential is another user's than ${username}`);
      }
    } catch (error) {
      // A token may have rights over repositories alone: then it shows nobody, and lists nothing.
      if (!(error instanceof GitError) || error.code !== "PermissionLacking") {
        throw error;
      }
      isVisible = false;
    }
    const repositoryDiscovery = isVisible && (await this.#mayList());
    return { repositoryDiscovery, pushDeploy: true, nativePreviews: false, versionDeploy: true };
  }

  async resolve(path: string): Promise<Repository> {
    if (!REPOSITORY_PATH.test(path)) {
      throw noRepository();
    }
    return this.#view(await this.#ask(`/repos/${path}`, schemas.repository));
  }

  async repository(id: string): Promise<Repository> {
    return this.#view(await this.#ask(`/repositories/${id}`, schemas.repository));
  }

  async repositories(cursor?: string): Promise<Page<Repository>> {
    const page = pageOf(cursor);
    const query = { page, limit: PAGE_SIZE };
    const found = await this.#api
      .request("/user/repos", schemas.repositories, { query })
      .catch((error: unknown) => {
        if (error instanceof GitError && error.code === "PermissionLacking") {
          throw new GitError("CapabilityUnavailable", "the credential may not list repositories");
        }
        throw error;
      });
    return {
      items: found.map((one) => this.#view(one)),
      nextCursor: found.length < PAGE_SIZE ? undefined : cursorOf(page + 1),
    };
  }

  async branches(repositoryId: string): Promise<Branch[]> {
    const found = await this.#list(repositoryId, "branches", schemas.branches);
    return found.flatMap(({ name, commit }) => named(name, commit.id));
  }

  async tags(repositoryId: string): Promise<Tag[]> {
    const found = await this.#list(repositoryId, "tags", schemas.tags);
    return found.flatMap(({ name, commit }) => named(name, commit.sha));
  }

  async releases(repositoryId: string): Promise<Release[]> {
    const found = await this.#list(repositoryId, "releases", schemas.releases);
    return found.flatMap(({ id, tag_name: tag, draft, prerelease, published_at }) => {
      if (tag === undefined) {
        return [];
      }
      const published = published_at ? { publishedAt: published_at } : {};
      return [{ id: String(id), tag, draft, prerelease, ...published }];
    });
  }

  async commit(repositoryId: string, ref: string, options: CommitOptions = {}): Promise<Commit> {
    const path = await this.#path(repositoryId);
    const empty = new GitError("RefNotFound", "the repository is empty");
    const once = async (signal?: AbortSignal): Promise<Commit> => {
      const query = { sha: ref, limit: 1, stat: false, verification: false, files: false };
      const ask = { query, missing: noRef, conflict: () => empty, ...(signal ? { signal } : {}) };
      const [found] = await this.#api.request(`${path}/commits`, schemas.commits, ask);
      if (!found) {
        throw noRef();
      }
      return { sha: found.sha, title: found.commit.message };
    };
    try {
      return await once();
    } catch (error) {
      if (error !== empty || !options.isPushed) {
        throw error;
      }
    }
    const { pausesMs, withinMs } = this.#options.emptyRetries ?? EMPTY_RETRIES;
    const end = AbortSignal.timeout(withinMs);
    for (const waitMs of pausesMs) {
      try {
        await sleep(waitMs, undefined, { signal: end });
        return await once(end);
      } catch (error) {
        if (end.aborted) {
          throw empty;
        }
        if (error !== empty) {
          throw error;
        }
      }
    }
    throw empty;
  }

  async ensureHook(repositoryId: string, { url, secret }: HookOptions): Promise<Hook> {
    const path = await this.#path(repositoryId);
    const older = await this.#hooks(path, url);
    // Created again each time: Gitea's PATCH keeps the secret, which cannot be read.
    const made = await this.#ask(`${path}/hooks`, schemas.hook, {
      type: "gitea",
      config: { url, content_type: "json", secret },
      events: EVENTS,
      active: true,
    });
    for (const { id } of older) {
      await this.#removeHook(path, id);
    }
    return { id: String(made.id) };
  }

  async removeHooks(repositoryId: string, url: string): Promise<void> {
    let path: string;
    try {
      path = await this.#path(repositoryId);
    } catch (error) {
      // Its hooks went with the repository.
      if (error instanceof GitError && error.code === "RepositoryNotFound") {
        return;
      }
      throw error;
    }
    for (const { id } of await this.#hooks(path, url)) {
      await this.#removeHook(path, id);
    }
  }

  async clone(repositoryId: string): Promise<CloneAccess> {
    const { instanceUrl, username, token } = this.#options;
    const { path } = await this.repository(repositoryId);
    // Not the server's own word for it, which may name an address that nobody has judged.
    return { url: `${instanceUrl}/${path}.git`, username, password: token };
  }

  #ask<T>(path: string, schema: z.ZodType<T>, body?: unknown): Promise<T> {
    return this.#api.request(path, schema, { body, missing: noRepository });
  }

  async #mayList(): Promise<boolean> {
    try {
      await this.repositories();
      return true;
    } catch (error) {
      if (error instanceof GitError && error.code === "CapabilityUnavailable") {
        return false;
      }
      throw error;
    }
  }

  #view(one: schemas.ApiRepository): Repository {
    // What it is called becomes part of later paths.
    if (!REPOSITORY_PATH.test(one.full_name)) {
      throw new GitError(
        "ProviderUnavailable",
        "the Git server names a repository in a way that is not understood",
      );
    }
    this.#known.set(String(one.id), one);
    const { id, full_name: path, default_branch: defaultBranch, html_url } = one;
    const webUrl =
      html_url !== undefined && URL.parse(html_url)?.protocol === "https:" ? html_url : undefined;
    return { id: String(id), path, defaultBranch, private: one.private, ...(webUrl ? { webUrl } : {}) };
  }

  async #path(repositoryId: string): Promise<string> {
    const path = this.#known.get(repositoryId)?.full_name ?? (await this.repository(repositoryId)).path;
    return `/repos/${path}`;
  }

  async #list<Item>(repositoryId: string, what: string, schema: z.ZodType<Item[]>): Promise<Item[]> {
    const path = `${await this.#path(repositoryId)}/${what}`;
    return readAll((page, budget) =>
      this.#api.request(path, schema, { query: { page, limit: PAGE_SIZE }, missing: noRepository, budget }),
    );
  }

  async #hooks(path: string, url: string): Promise<z.output<typeof schemas.hooks>> {
    const all = await readAll((page, budget) =>
      this.#api.request(`${path}/hooks`, schemas.hooks, {
        query: { page, limit: PAGE_SIZE },
        missing: noRepository,
        budget,
      }),
    );
    return all.filter(({ config }) => config?.url === url);
  }

  async #removeHook(path: string, id: number): Promise<void> {
    const missing = new GitError("RefNotFound", "the hook was deleted");
    await this.#api
      .send(`${path}/hooks/${id}`, { method: "DELETE", missing: () => missing })
      .catch((error: unknown) => {
        if (error !== missing) {
          throw error;
        }
      });
  }
}
