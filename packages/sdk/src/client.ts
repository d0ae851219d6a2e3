import createClient, { type Client, type FetchResponse, type MaybeOptionalInit } from "openapi-fetch";
import type { MediaType, PathsWithMethod, RequiredKeysOf } from "openapi-typescript-helpers";
import { toSlipwayError } from "./error.ts";
import type { paths } from "./generated/openapi.ts";
import { type RetryOptions, retryAfterMs } from "./retry.ts";
import { type Send, withRetries } from "./transport.ts";

export interface SlipwayOptions {
  /** Where the API is, for example `https://api.example.com`. */
  readonly url: string;
  /** An organization's API key. */
  readonly apiKey?: string;
  /** A user's token, with {@link organizationId}. */
  readonly token?: string;
  readonly organizationId?: string;
  /** How a request is sent; the global `fetch` unless given. */
  readonly fetch?: Send;
  readonly retries?: RetryOptions;
  /** Further headers of every request, for example `user-agent`. */
  readonly headers?: Readonly<Record<string, string>>;
}

type Method = "get" | "put" | "post" | "delete" | "patch";
type Init<Path extends keyof paths, M extends Method> = MaybeOptionalInit<paths[Path], M>;
/** May be left out where nothing of it is required. */
type InitParameter<I> = RequiredKeysOf<I> extends never ? [I?] : [I];

/** The body of an operation's success: the envelope, with `data` or `message`; of `parseAs` its text or stream. */
type Success<Operation, I> =
  Operation extends Record<string | number, unknown>
    ? NonNullable<FetchResponse<Operation, I, MediaType>["data"]>
    : never;

/** Calls an operation by its path. @throws SlipwayError for every answer that is no success */
export type Call<M extends Method> = <Path extends PathsWithMethod<paths, M>, I extends Init<Path, M>>(
  path: Path,
  ...init: InitParameter<I>
) => Promise<Success<paths[Path][M], I>>;

/** Typed calls of every operation of the API. */
export interface Slipway {
  readonly GET: Call<"get">;
  readonly PUT: Call<"put">;
  readonly POST: Call<"post">;
  readonly DELETE: Call<"delete">;
  readonly PATCH: Call<"patch">;
}

/** A client of one server, with one credential. */
export function createSlipway({ url, fetch, retries, ...options }: SlipwayOptions): Slipway {
  const send: Send = fetch ?? ((request) => globalThis.fetch(request));
  const client = createClient<paths>({
    baseUrl: url.replace(/\/+$/, ""),
    headers: credentialHeaders(options),
    fetch: withRetries(send, retries),
  });
  client.use({
    onResponse: async ({ response }) => {
      if (!response.ok) {
        const after = retryAfterMs(response.headers.get("retry-after"), Date.now());
        throw toSlipwayError(
          response.status,
          await response.text(),
          after === undefined ? undefined : after / 1_000,
        );
      }
    },
  });
  const call = (method: Uppercase<Method>) =>
    (async (path: string, init?: object) => {
      // The types of a call are those of `Slipway`; here the path is any of them.
      const untyped = client[method] as unknown as (
        path: string,
        init?: object,
      ) => Promise<{ data?: unknown }>;
      const { data } = await untyped(path, init);
      return data;
    }) as unknown as Client<paths>[typeof method];
  return {
    GET: call("GET"),
    PUT: call("PUT"),
    POST: call("POST"),
    DELETE: call("DELETE"),
    PATCH: call("PATCH"),
  } as unknown as Slipway;
}

/** Headers of every request: a credential that is not given is not sent. */
function credentialHeaders({
  apiKey,
  token,
  organizationId,
  headers,
}: Omit<SlipwayOptions, "url" | "fetch" | "retries">): Record<string, string> {
  return {
    ...headers,
    ...(apiKey === undefined ? {} : { "x-api-key": apiKey }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(organizationId === undefined ? {} : { "x-organization-id": organizationId }),
  };
}
