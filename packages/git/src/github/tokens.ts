/** Tokens of one installation of a GitHub App. */

import { createPrivateKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { importPKCS8, SignJWT } from "jose";
import { z } from "zod";
import { GitError } from "../errors.ts";
import { JsonApi } from "../json-api.ts";
import type { SsrfSafeFetch } from "../net/fetch.ts";
import * as schemas from "./schemas.ts";

export interface GithubApp {
  /** Base address of the API: https://api.github.com, or https://host/api/v3 of an Enterprise Server. */
  apiUrl: string;
  /** Base address that repositories are cloned from: https://github.com, or https://host. */
  cloneUrl: string;
  appId: string;
  /** PEM, as GitHub gives it out (PKCS #1) or PKCS #8. */
  privateKey: string;
}

/** A token is renewed so long before it expires, in milliseconds. */
const MARGIN_MS = 5 * 60_000;
/** GitHub takes App tokens for ten minutes at most, and its clock may be behind. */
const BEHIND_SECONDS = 60;
const LIFE_SECONDS = 9 * 60;

/** A JWT that says that it is the App who asks. */
export async function appToken({ appId, privateKey }: GithubApp, now: Date): Promise<string> {
  const pkcs8 = createPrivateKey(privateKey).export({ type: "pkcs8", format: "pem" }) as string;
  const seconds = Math.floor(now.getTime() / 1_000);
  return new SignJWT({})
    .setProtectedHeader({ alg: "RS256", typ: "JWT" })
    .setIssuer(appId)
    .setIssuedAt(seconds - BEHIND_SECONDS)
    .setExpirationTime(seconds + LIFE_SECONDS)
    .sign(await importPKCS8(pkcs8, "RS256"));
}

/** Keeps an installation's token for as long as it is good. */
export class InstallationTokens {
  readonly #app: GithubApp;
  readonly #installationId: string;
  readonly #api: JsonApi;
  readonly #now: () => Date;
  #current: { token: string; endsAt: number } | undefined;
  #pending: Promise<string> | undefined;

  constructor(
    fetch: SsrfSafeFetch,
    app: GithubApp,
    installationId: string,
    now: () => Date = () => new Date(),
  ) {
    this.#app = app;
    this.#installationId = installationId;
    this.#now = now;
    const headers = async () => ({
      authorization: `Bearer ${await appToken(app, now())}`,
      ...GITHUB_HEADERS,
    });
    this.#api = new JsonApi({ fetch, base: app.apiUrl, headers });
  }

  /** A token that is good for some minutes at least. @throws GitError */
  token(): Promise<string> {
    if (this.#current && this.#current.endsAt - MARGIN_MS > this.#now().getTime()) {
      return Promise.resolve(this.#current.token);
    }
    this.#pending ??= this.#ask().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  /** The next call requests another one. */
  forget(): void {
    this.#current = undefined;
  }

  /** A new token that reads the contents of one repository and nothing else, for an hour. @throws GitError */
  async forRepository(repositoryId: string): Promise<string> {
    const { token } = await this.#create({
      repository_ids: [Number(repositoryId)],
      permissions: { contents: "read" },
    });
    return token;
  }

  /** The account that the App is installed in. @throws GitError CredentialRefused when it is not, or was suspended */
  async account(): Promise<{ login: string }> {
    const { account, suspended_at } = await this.#api.request(this.#path, schemas.installation, {
      missing: () => this.#notInstalled(),
    });
    if (suspended_at) {
      throw new GitError("CredentialRefused", "the installation of the App is suspended");
    }
    return { login: account.login };
  }

  async #ask(): Promise<string> {
    const { token, expires_at } = await this.#create();
    this.#current = { token, endsAt: Date.parse(expires_at) };
    return token;
  }

  #create(body?: object): Promise<{ token: string; expires_at: string }> {
    return this.#api.request(`${this.#path}/access_tokens`, schemas.installationToken, {
      method: "POST",
      ...(body === undefined ? {} : { body }),
      missing: () => this.#notInstalled(),
      // Suspended.
      forbidden: () => new GitError("CredentialRefused", "the installation of the App gives out no tokens"),
      // The installation was narrowed.
      unprocessable: () =>
        new GitError("CredentialRefused", "the installation does not grant the repository"),
    });
  }

  get #path(): string {
    return `/app/installations/${encodeURIComponent(this.#installationId)}`;
  }

  #notInstalled(): GitError {
    return new GitError("CredentialRefused", `app ${this.#app.appId} is not installed there any more`);
  }
}

export const GITHUB_HEADERS = {
  accept: "application/vnd.github+json",
  "x-github-api-version": "2022-11-28",
} as const;

/** Settings of the installation about its GitHub App. */

const address = z.url({ protocol: /^https$/ }).transform((url) => url.replace(/\/+$/, ""));

/** Variables of the environment that name the App; without an id there is none. */
export const githubEnvironment = {
  SLIPWAY_GITHUB_APP_ID: z
    .string()
    .regex(/^[A-Za-z0-9.]{1,64}$/, "must be the App's id or its client id")
    .optional(),
  SLIPWAY_GITHUB_KEY_FILE: z.string().min(1).optional(),
  SLIPWAY_GITHUB_API_URL: address.default("https://api.github.com"),
  SLIPWAY_GITHUB_URL: address.default("https://github.com"),
};

/** Where the App's settings are. */
export interface GithubAppConfig extends Omit<GithubApp, "privateKey"> {
  /** PEM file with the App's private key. */
  keyFile: string;
}

/** @returns undefined without an App */
export function githubAppConfig(env: {
  SLIPWAY_GITHUB_APP_ID?: string | undefined;
  SLIPWAY_GITHUB_KEY_FILE?: string | undefined;
  SLIPWAY_GITHUB_API_URL: string;
  SLIPWAY_GITHUB_URL: string;
}): GithubAppConfig | undefined {
  const { SLIPWAY_GITHUB_APP_ID: appId, SLIPWAY_GITHUB_KEY_FILE: keyFile } = env;
  if (appId === undefined || keyFile === undefined) {
    return undefined;
  }
  return { appId, keyFile, apiUrl: env.SLIPWAY_GITHUB_API_URL, cloneUrl: env.SLIPWAY_GITHUB_URL };
}

/** Reads the key for each use: it is replaced without a restart. */
export function mountedGithubApp(config: GithubAppConfig | undefined): () => GithubApp | undefined {
  if (config === undefined) {
    return () => undefined;
  }
  const { keyFile, ...app } = config;
  return () => ({ ...app, privateKey: readFileSync(keyFile, "utf8") });
}
