import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from "jose";
import { z } from "zod";

/** OpenID Connect issuers: their configuration, and the keys that verify their tokens. */

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Whether tokens may be trusted by what is fetched from there: HTTPS, or this machine itself. */
function isSafe(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "" || url.hash !== "") {
    return false;
  }
  return url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
}

const address = z
  .string()
  .max(1024)
  .refine(isSafe, "must be an https address without user, password and fragment");

const issuers = z
  .array(
    z.strictObject({
      issuer: address.refine((text) => !text.includes("?"), "must not have a query"),
      audience: z
        .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
        .transform((one) => (typeof one === "string" ? [one] : one)),
      jwksUri: address.optional(),
    }),
  )
  .refine((list) => new Set(list.map(({ issuer }) => issuer)).size === list.length, "names an issuer twice");

/** An OpenID Connect issuer whose tokens are accepted as user tokens. */
export interface OidcIssuer {
  /** Exactly the `iss` of its tokens. */
  issuer: string;
  /** A token must be for one of these. */
  audience: string[];
  /** Where its keys are; found by discovery without it. */
  jwksUri?: string | undefined;
}

/** `SLIPWAY_OIDC_ISSUERS`: a JSON array of `{issuer, audience, jwksUri?}`. */
export const oidcIssuers = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.issues.push({ code: "custom", input: text, message: "must be JSON" });
      return z.NEVER;
    }
  })
  .pipe(issuers);

/** The issuer's keys are unavailable, so its tokens cannot be verified now. */
export class IssuerUnavailable extends Error {
  override readonly name = "IssuerUnavailable";
}

export interface OidcKeysOptions {
  /** Timeout of one request to the issuer. */
  timeoutMs: number;
  /** After this, the keys are fetched again. */
  freshMs: number;
  /** Keys that could not be fetched again serve on for this long. */
  staleMs: number;
  /** A token with an unknown key causes another fetch of the keys, at most this often. */
  cooldownMs: number;
  /** After a failure no request is sent to the issuer for this long. */
  failureMs: number;
  onFailure: (issuer: string, error: unknown) => void;
}

const DEFAULTS: OidcKeysOptions = {
  timeoutMs: 5_000,
  freshMs: 10 * 60_000,
  staleMs: 24 * 3_600_000,
  cooldownMs: 10_000,
  failureMs: 5_000,
  onFailure: () => {},
};

/** A key set or a discovery document is a few KiB. */
const LARGEST_ANSWER = 1024 * 1024;

/**
 * The keys of one issuer: found by discovery unless they are configured, fetched when first needed, kept,
 * fetched again when a token names a key that is not among them. While the issuer is unavailable the last ones stay valid.
 * @throws IssuerUnavailable when the key in question cannot be fetched now
 */
export function oidcKeys(issuer: OidcIssuer, options: Partial<OidcKeysOptions> = {}): JWTVerifyGetKey {
  const { timeoutMs, freshMs, staleMs, cooldownMs, failureMs, onFailure } = { ...DEFAULTS, ...options };
  let failedAt = Number.NEGATIVE_INFINITY;
  let succeededAt = Number.NEGATIVE_INFINITY;

  const load = async (signal: AbortSignal): Promise<Response> => {
    if (performance.now() - failedAt < failureMs) {
      throw new IssuerUnavailable("it failed a moment ago");
    }
    try {
      const keys = await fetchJson(issuer.jwksUri ?? (await discover(issuer.issuer, signal)), signal);
      // Tried here, so that an answer that is no key set counts as a failure.
      createLocalJWKSet(keys as JSONWebKeySet);
      succeededAt = performance.now();
      return Response.json(keys);
    } catch (cause) {
      failedAt = performance.now();
      onFailure(issuer.issuer, cause);
      throw new IssuerUnavailable(`the keys of ${issuer.issuer} cannot be fetched`, { cause });
    }
  };
  // Its address is not used: `load` knows the address, and may need two requests.
  const remote = createRemoteJWKSet(new URL(issuer.issuer), {
    timeoutDuration: timeoutMs,
    cacheMaxAge: freshMs,
    cooldownDuration: cooldownMs,
    [customFetch]: (_url, { signal }) => load(signal),
  });

  return async (header, token) => {
    try {
      return await remote(header, token);
    } catch (error) {
      if (!(error instanceof IssuerUnavailable)) {
        throw error;
      }
      const kept = performance.now() - succeededAt < staleMs ? remote.jwks() : undefined;
      if (kept === undefined) {
        throw new IssuerUnavailable(error.message, { cause: error });
      }
      return createLocalJWKSet(kept)(header, token).catch(() => {
        // Perhaps a key that is newer than the cached ones.
        throw new IssuerUnavailable("the token's key is not among those at hand", { cause: error });
      });
    }
  };
}

/** Where the issuer's keys are, from its discovery document. */
async function discover(issuer: string, signal: AbortSignal): Promise<string> {
  const document = await fetchJson(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, signal);
  const { issuer: says, jwks_uri: uri } = document as { issuer?: unknown; jwks_uri?: unknown };
  if (says !== issuer) {
    throw new Error(`its discovery document is of issuer ${JSON.stringify(says)}`);
  }
  const from = new URL(issuer).protocol;
  if (typeof uri !== "string" || ![from, "https:"].includes(URL.parse(uri)?.protocol ?? "")) {
    throw new Error("its discovery document names no jwks_uri over https");
  }
  return uri;
}

async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { signal, redirect: "error", headers: { accept: "application/json" } });
  if (response.status !== 200) {
    throw new Error(`${url} answers ${response.status}`);
  }
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > LARGEST_ANSWER) {
      throw new Error(`${url} answers more than ${LARGEST_ANSWER} bytes`);
    }
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}
