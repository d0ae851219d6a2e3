/** A JSON API behind the guarded fetch: what Forgejo's and GitHub's clients have in common. */

import type { z } from "zod";
import { GitError } from "./errors.ts";
import type { FetchRequest, FetchResponse, SsrfSafeFetch } from "./net/fetch.ts";
import type { ByteBudget } from "./paging.ts";

export interface JsonApiOptions {
  fetch: SsrfSafeFetch;
  /** Base address, without a slash at the end. */
  base: string;
  /** Headers of every request; asked each time, for tokens end. */
  headers: () => Promise<Record<string, string>> | Record<string, string>;
  /** Called when the server does not take what they say: they may be out of date. */
  onUnauthorized?: () => void;
}

export type QueryValues = Readonly<Record<string, string | number | boolean>>;

export interface JsonRequest {
  query?: QueryValues;
  body?: unknown;
  method?: FetchRequest["method"];
  /** The failure that 404 stands for. */
  missing?: () => GitError;
  /** The failure that 403 stands for. */
  forbidden?: () => GitError;
  /** The failure that 422 stands for: GitHub answers it to a ref that names no commit. */
  unprocessable?: () => GitError;
  /** Bytes of the list that the answer is a page of. */
  budget?: ByteBudget;
  signal?: AbortSignal;
}

export class JsonApi {
  readonly #options: JsonApiOptions;

  constructor(options: JsonApiOptions) {
    this.#options = options;
  }

  /** A checked answer. @throws GitError */
  async request<T>(path: string, schema: z.ZodType<T>, ask: JsonRequest = {}): Promise<T> {
    const { text } = await this.send(path, ask);
    spend(ask.budget, text);
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      throw unexpectedResponse("no JSON");
    }
    const result = schema.safeParse(parsed);
    if (result.success) {
      return result.data;
    }
    const fields = result.error.issues.slice(0, 5).map((issue) => issue.path.join("."));
    throw unexpectedResponse(`other fields than its version has: ${fields.join(", ")}`);
  }

  /** An answer of any kind that is a success. @throws GitError */
  async send(path: string, ask: JsonRequest = {}): Promise<FetchResponse> {
    const { fetch, base, headers } = this.#options;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(ask.query ?? {})) {
      query.set(name, String(value));
    }
    const url = `${base}${path}${query.size > 0 ? `?${query}` : ""}`;
    const body = ask.body === undefined ? undefined : JSON.stringify(ask.body);
    const response = await fetch.send(url, {
      method: ask.method ?? (body === undefined ? "GET" : "POST"),
      headers: {
        accept: "application/json",
        // GitHub refuses requests without one.
        "user-agent": "slipway",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(await headers()),
      },
      body,
      signal: ask.signal,
    });
    if (response.status >= 200 && response.status < 300) {
      return response;
    }
    if (response.status === 401 || response.status === 403) {
      this.#options.onUnauthorized?.();
    }
    throw toGitError(response, ask);
  }
}

function spend(budget: ByteBudget | undefined, text: string): void {
  if (budget === undefined) {
    return;
  }
  budget.left -= Buffer.byteLength(text);
  if (budget.left < 0) {
    throw new GitError("ProviderUnavailable", "the Git server's list is larger than what is read of one");
  }
}

const unexpectedResponse = (what: string) =>
  new GitError("ProviderUnavailable", `the Git server answers ${what}: is the address that of a Git server?`);

/** Nothing of the answer's body goes into the message: it may repeat what was sent. */
function toGitError(
  { status, headers }: FetchResponse,
  { missing, forbidden, unprocessable }: JsonRequest,
): GitError {
  const isLimited = status === 429 || (status === 403 && headers["x-ratelimit-remaining"] === "0");
  if (isLimited) {
    return new GitError("ProviderUnavailable", "the Git server asks for fewer requests");
  }
  if (status === 401) {
    return new GitError("CredentialRefused", "the Git server does not take the credential");
  }
  if (status === 403 && forbidden) {
    return forbidden();
  }
  // Single sign-on: the organization wants the access confirmed anew.
  if (status === 403 && String(headers["x-github-sso"] ?? "").startsWith("required")) {
    return new GitError("CredentialRefused", "the Git server wants the access authorized anew");
  }
  if (status === 403) {
    return new GitError("PermissionLacking", "the credential may not do this at the Git server");
  }
  if (status === 404 && missing) {
    return missing();
  }
  if (status === 422 && unprocessable) {
    return unprocessable();
  }
  if (status >= 500) {
    return new GitError("ProviderUnavailable", `the Git server fails (HTTP ${status})`);
  }
  return unexpectedResponse(`HTTP ${status}`);
}
