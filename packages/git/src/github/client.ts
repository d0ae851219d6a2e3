/** GitHub, through an App that is installed in an account. */

import type { z } from "zod";
import { GitError } from "../errors.ts";
import { cursorOf, JsonApi, PAGE_SIZE, pageOf, readAll } from "../json-api.ts";
import type { SsrfSafeFetch } from "../net/fetch.ts";
import {
  type Branch,
  type Capabilities,
  type CloneAccess,
  type Commit,
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
import { GITHUB_HEADERS, type GithubApp, InstallationTokens } from "./tokens.ts";

export interface GithubOptions {
  fetch: SsrfSafeFetch;
  app: GithubApp;
  installationId: string;
  now?: () => Date;
  /** Tokens of this installation that others use, too; its own unless given. */
  tokens?: InstallationTokens;
}

const noRepository = () => new GitError("RepositoryNotFound", "the installation sees no such repository");
const noRef = () => new GitError("RefNotFound", "the repository has no such branch, tag or commit");

export class GithubClient implements GitProvider {
  readonly #api: JsonApi;
  readonly #tokens: InstallationTokens;
  readonly #cloneUrl: string;

  constructor({ fetch, app, installationId, now, tokens }: GithubOptions) {
    this.#tokens = tokens ?? new InstallationTokens(fetch, app, installationId, now);
    this.#cloneUrl = app.cloneUrl;
    const headers = async () => ({
      authorization: `Bearer ${await this.#tokens.token()}`,
      ...GITHUB_HEADERS,
    });
    this.#api = new JsonApi({
      fetch,
      base: app.apiUrl,
      headers,
      // Suspended and taken up again, an installation's older tokens are none any more.
      onUnauthorized: () => this.#tokens.forget(),
    });
  }

  async check(): Promise<Capabilities> {
    await this.#page(1, 1);
    return { repositoryDiscovery: true, pushDeploy: true, nativePreviews: false, versionDeploy: true };
  }

  async resolve(path: string): Promise<Repository> {
    if (!REPOSITORY_PATH.test(path)) {
      throw noRepository();
    }
    return view(await this.#ask(`/repos/${path}`, schemas.repository));
  }

  async repository(id: string): Promise<Repository> {
    return view(await this.#ask(`/repositories/${encodeURIComponent(id)}`, schemas.repository));
  }

  async repositories(cursor?: string): Promise<Page<Repository>> {
    const page = pageOf(cursor);
    const { total_count: total, repositories } = await this.#page(page, PAGE_SIZE);
    return {
      items: repositories.map(view),
      nextCursor: page * PAGE_SIZE < total ? cursorOf(page + 1) : undefined,
    };
  }

  async branches(repositoryId: string): Promise<Branch[]> {
    return (await this.#list(repositoryId, "branches", schemas.refs)).flatMap(named);
  }

  async tags(repositoryId: string): Promise<Tag[]> {
    return (await this.#list(repositoryId, "tags", schemas.refs)).flatMap(named);
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

  async commit(repositoryId: string, ref: string): Promise<Commit> {
    const path = `${await this.#path(repositoryId)}/commits/${encodeURIComponent(ref)}`;
    const { sha, commit } = await this.#api.request(path, schemas.commit, {
      missing: noRef,
      unprocessable: noRef,
    });
    return { sha, title: commit.message };
  }

  async ensureHook(repositoryId: string, { url, secret }: HookOptions): Promise<Hook> {
    const path = await this.#path(repositoryId);
    const older = await this.#hooks(path, url);
    const body = {
      name: "web",
      active: true,
      events: ["push", "create", "release"],
      config: { url, content_type: "json", secret, insecure_ssl: "0" },
    };
    // Here the secret can be changed, and a second hook with the same URL would be refused.
    const [kept] = older;
    const made =
      kept === undefined
        ? await this.#ask(`${path}/hooks`, schemas.hook, { body })
        : await this.#ask(`${path}/hooks/${kept.id}`, schemas.hook, { body, method: "PATCH" });
    return { id: String(made.id) };
  }

  async removeHooks(repositoryId: string, url: string): Promise<void> {
    const path = await this.#path(repositoryId).catch((error: unknown) => {
      // Its hooks went with the repository.
      if (error instanceof GitError && error.code === "RepositoryNotFound") {
        return undefined;
      }
      throw error;
    });
    if (path === undefined) {
      return;
    }
    const missing = new GitError("RefNotFound", "the hook was deleted");
    for (const { id } of await this.#hooks(path, url)) {
      await this.#api
        .send(`${path}/hooks/${id}`, { method: "DELETE", missing: () => missing })
        .catch((error: unknown) => {
          if (error !== missing) {
            throw error;
          }
        });
    }
  }

  /** With a token of its own, which reads this repository alone. */
  async clone(repositoryId: string): Promise<CloneAccess> {
    const { path } = await this.repository(repositoryId);
    return {
      url: `${this.#cloneUrl}/${path}.git`,
      username: "x-access-token",
      password: await this.#tokens.forRepository(repositoryId),
    };
  }

  /** The account that the App is installed in. @throws GitError */
  account(): Promise<{ login: string }> {
    return this.#tokens.account();
  }

  #ask<T>(
    path: string,
    schema: z.ZodType<T>,
    more: { body?: unknown; method?: "POST" | "PATCH" } = {},
  ): Promise<T> {
    return this.#api.request(path, schema, { ...more, missing: noRepository });
  }

  #page(page: number, size: number): Promise<z.output<typeof schemas.repositories>> {
    return this.#api.request("/installation/repositories", schemas.repositories, {
      query: { page, per_page: size },
    });
  }

  async #path(repositoryId: string): Promise<string> {
    return `/repos/${(await this.repository(repositoryId)).path}`;
  }

  async #list<Item>(repositoryId: string, what: string, schema: z.ZodType<Item[]>): Promise<Item[]> {
    const path = `${await this.#path(repositoryId)}/${what}`;
    return readAll((page, budget) =>
      this.#api.request(path, schema, {
        query: { page, per_page: PAGE_SIZE },
        missing: noRepository,
        budget,
      }),
    );
  }

  async #hooks(path: string, url: string): Promise<z.output<typeof schemas.hooks>> {
    const all = await readAll((page, budget) =>
      this.#api.request(`${path}/hooks`, schemas.hooks, {
        query: { page, per_page: PAGE_SIZE },
        missing: noRepository,
        budget,
      }),
    );
    return all.filter(({ config }) => config.url === url);
  }
}

function view({
  id,
  full_name: path,
  default_branch: defaultBranch,
  html_url,
  ...rest
}: schemas.ApiRepository): Repository {
  if (!REPOSITORY_PATH.test(path)) {
    throw new GitError("ProviderUnavailable", "GitHub names a repository in a way that is not understood");
  }
  return {
    id: String(id),
    path,
    defaultBranch,
    private: rest.private,
    ...(html_url ? { webUrl: html_url } : {}),
  };
}

/** Names that are longer than any that is built from are left out. */
const named = ({ name, commit }: { name?: string; commit: { sha: string } }) =>
  name === undefined ? [] : [{ name, commitSha: commit.sha }];
