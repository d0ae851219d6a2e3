/** JSON requests to a Git server through the SSRF-safe fetch, and the schemas of what Forgejo's and GitHub's clients parse. */

import { z } from "zod";
import { GitError } from "./errors.ts";
import type { FetchRequest, FetchResponse, SsrfSafeFetch } from "./net/fetch.ts";

export interface JsonApiOptions {
  fetch: SsrfSafeFetch;
  /** Base address, without a slash at the end. */
  base: string;
  /** Headers of every request; called each time, since tokens expire. */
  headers: () => Promise<Record<string, string>> | Record<string, string>;
  /** Called when the server rejects them: they may be expired. */
  onUnauthorized?: () => void;
}

export type QueryValues = Readonly<Record<string, string | number | boolean>>;

export interface JsonRequest {
  query?: QueryValues;
  body?: unknown;
  method?: FetchRequest["method"];
  /** The failure for 404. */
  missing?: () => GitError;
  /** The failure for 403. */
  forbidden?: () => GitError;
  /** The failure for 409: Gitea answers it about a repository without a commit. */
  conflict?: () => GitError;
  /** The failure for 422: GitHub answers it to a ref that names no commit. */
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

  /** An answer that matches the schema. @throws GitError */
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

/** The message contains nothing of the answer's body, which may repeat what was sent. */
function toGitError(
  { status, headers }: FetchResponse,
  { missing, forbidden, conflict, unprocessable }: JsonRequest,
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
  // Single sign-on: the organization requires a new authorization.
  if (status === 403 && String(headers["x-github-sso"] ?? "").startsWith("required")) {
    return new GitError("CredentialRefused", "the Git server requires the access to be authorized again");
  }
  if (status === 403) {
    return new GitError("PermissionLacking", "the credential may not do this at the Git server");
  }
  if (status === 404 && missing) {
    return missing();
  }
  if (status === 409 && conflict) {
    return conflict();
  }
  if (status === 422 && unprocessable) {
    return unprocessable();
  }
  if (status >= 500) {
    return new GitError("ProviderUnavailable", `the Git server fails (HTTP ${status})`);
  }
  return unexpectedResponse(`HTTP ${status}`);
}

/** Longest name of a branch or a tag, in characters. */
export const REF_NAME_MAX_LENGTH = 255;

/** Longest title of a commit that is kept, in characters; the rest is cut off. */
const TITLE_MAX_LENGTH = 512;

/** Name of a branch or a tag; undefined for one that is longer than any that is built from. */
export const refName = z
  .string()
  .transform((name) => (name === "" || name.length > REF_NAME_MAX_LENGTH ? undefined : name));

/** A name, a path or a time, with its bound. */
export const bounded = (max: number) => z.string().max(max);

/** Hexadecimal id of a commit, SHA-1 or SHA-256. */
export const sha = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/);

/** An address for people; undefined for one that is too long for browsers. */
export const webUrl = z
  .string()
  .transform((url) => (url.length > 2_048 ? undefined : url))
  .optional();

/** The first line of a commit's message, cut to a bound. */
export const title = z
  .string()
  .transform((message) => message.slice(0, TITLE_MAX_LENGTH).split("\n", 1)[0]?.trimEnd() ?? "");

// Pages of lists: what servers number, clients see as an opaque cursor.

/** Items of one page. */
export const PAGE_SIZE = 50;
/** Pages of a list that is read whole. */
const MOST_PAGES = 20;

/** The cursor of a page. */
export function cursorOf(page: number): string {
  return Buffer.from(`page:${page}`).toString("base64url");
}

/** The page of a cursor; the first one without. @throws GitError CursorInvalid */
export function pageOf(cursor: string | undefined): number {
  if (cursor === undefined) {
    return 1;
  }
  const page = Number(/^page:([1-9][0-9]{0,4})$/.exec(Buffer.from(cursor, "base64url").toString())?.[1]);
  if (!Number.isInteger(page) || cursorOf(page) !== cursor) {
    throw new GitError("CursorInvalid", "the cursor is not one that was given out");
  }
  return page;
}

/** Bytes of all answers of one list. Releases include their notes, which are not read here. */
const LIST_BYTES = 16 * 1024 * 1024;

/** What is left of the bytes that a list may take. */
export interface ByteBudget {
  left: number;
}

/**
 * Every item of a list, at most 1,000.
 * @param read a page; it counts the answer's bytes against the budget
 */
export async function readAll<Item>(
  read: (page: number, budget: ByteBudget) => Promise<Item[]>,
): Promise<Item[]> {
  const items: Item[] = [];
  const budget = { left: LIST_BYTES };
  for (let page = 1; page <= MOST_PAGES; page += 1) {
    const found = await read(page, budget);
    items.push(...found);
    if (found.length < PAGE_SIZE) {
      break;
    }
  }
  return items.slice(0, PAGE_SIZE * MOST_PAGES);
}
