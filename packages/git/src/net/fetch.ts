/** Requests to servers that tenants name, without access to the platform's own network. */

import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { getCACertificates } from "node:tls";
import { Agent, type Dispatcher, request } from "undici";
import { GitError } from "../errors.ts";
import { hostAndPort, isPublicAddress } from "./addresses.ts";

/** All addresses of a host. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

export interface SsrfSafeFetchOptions {
  /** `host:port` whose address may be private. */
  allowedHosts?: readonly string[];
  /** PEM certificates of authorities that are trusted beside the public ones. */
  ca?: string;
  /** The system's resolver unless given. */
  resolve?: Resolve;
  /** Milliseconds for one request, redirects and the whole answer included; 15,000 unless given. */
  timeoutMs?: number;
  /** Bytes of the longest answer; 4 MiB unless given. */
  maxBytes?: number;
  /** Addresses that are refused although they are public, such as the cluster's own. */
  isRefused?: (address: string) => boolean;
  /** A receiver's answer matters little: a redirect is returned as it is, and of a longer answer its first bytes are. */
  isLenient?: boolean;
}

export interface FetchRequest {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
}

export interface FetchResponse {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  text: string;
}

const REDIRECTS = 3;
const UNTRUSTED =
  /^(ERR_TLS_|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|PATH_LENGTH)/;

/**
 * HTTPS to servers that tenants name. A host is resolved once per connection, every address that it has is judged, and the
 * connection goes to one of those judged: an answer that changes in between changes nothing. Redirects are followed by
 * reads alone, and only to the same origin, for headers carry credentials.
 */
export class SsrfSafeFetch {
  readonly #agent: Agent;
  readonly #allowedAgent: Agent;
  readonly #allowed: ReadonlySet<string>;
  readonly #timeoutMs: number;
  readonly #maxBytes: number;
  readonly #isLenient: boolean;
  readonly #mayConnect: (address: string) => boolean;

  constructor(options: SsrfSafeFetchOptions = {}) {
    const { allowedHosts = [], ca, resolve = systemResolve, isRefused = () => false } = options;
    this.#isLenient = options.isLenient ?? false;
    this.#mayConnect = (address) => isPublicAddress(address) && !isRefused(address);
    this.#allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
    this.#timeoutMs = options.timeoutMs ?? 15_000;
    this.#maxBytes = options.maxBytes ?? 4 * 1024 * 1024;
    const authorities = ca === undefined ? undefined : [...getCACertificates("default"), ca];
    const connect = { ca: authorities, timeout: Math.min(this.#timeoutMs, 5_000) };
    // Whether a host may be private depends on its port, which a lookup does not know: a pool for either.
    const pool = (isAllowed: boolean) =>
      new Agent({
        connect: {
          ...connect,
          lookup: ssrfSafeLookup(resolve, isAllowed ? () => true : this.#mayConnect),
        },
        connections: 8,
        keepAliveTimeout: 5_000,
      });
    this.#agent = pool(false);
    this.#allowedAgent = pool(true);
  }

  /**
   * Sends a request and reads the whole answer, whatever its status.
   * @throws GitError AddressRefused, CertificateUntrusted, ProviderUnavailable
   */
  async send(address: string, options: FetchRequest = {}): Promise<FetchResponse> {
    const { signal } = options;
    const deadline = AbortSignal.timeout(this.#timeoutMs);
    const until = signal ? AbortSignal.any([signal, deadline]) : deadline;
    let url = new URL(address);
    try {
      for (let hop = 0; ; hop += 1) {
        const answer = await this.#once(url, options, until);
        const target = this.#isLenient ? undefined : redirectTarget(answer, url);
        if (target === undefined) {
          return answer;
        }
        if ((options.method ?? "GET") !== "GET" || target.origin !== url.origin || hop === REDIRECTS) {
          throw new GitError(
            "ProviderUnavailable",
            "the Git server answers with a redirect that is not followed",
          );
        }
        url = target;
      }
    } catch (error) {
      signal?.throwIfAborted();
      throw toGitError(error);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#agent.destroy(), this.#allowedAgent.destroy()]);
  }

  async #once(url: URL, options: FetchRequest, signal: AbortSignal): Promise<FetchResponse> {
    const { method = "GET", headers, body } = options;
    if (url.protocol !== "https:") {
      throw refused("it is not HTTPS");
    }
    const isAllowed = this.#allowed.has(hostAndPort(url));
    // No name to resolve.
    const literal = url.hostname.replace(/^\[|\]$/g, "");
    if (isIP(literal) !== 0 && !isAllowed && !this.#mayConnect(literal)) {
      throw refused();
    }
    const response = await request(url, {
      dispatcher: isAllowed ? this.#allowedAgent : this.#agent,
      method,
      headers,
      body,
      signal,
      headersTimeout: this.#timeoutMs,
      bodyTimeout: this.#timeoutMs,
    });
    const text = await this.#read(response);
    return { status: response.statusCode, headers: response.headers, text };
  }

  async #read({ body }: Dispatcher.ResponseData): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      // Leaving the loop destroys the body, and with it the connection.
      if (bytes > this.#maxBytes && this.#isLenient) {
        chunks.push(chunk.subarray(0, chunk.length - (bytes - this.#maxBytes)));
        break;
      }
      if (bytes > this.#maxBytes) {
        throw new GitError("ProviderUnavailable", "the Git server's answer is too long");
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  }
}

const refused = (why = "it is not a public address") =>
  new GitError("AddressRefused", `the platform does not connect to the Git server's address: ${why}`);

/** Resolves as the system does, also by its hosts file and search domains. Waits in a thread of the pool that all lookups of a process share. */
export const systemResolve: Resolve = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true, verbatim: true }, (error, addresses) => {
      if (error) {
        reject(error);
      } else {
        resolve(addresses);
      }
    });
  });

/**
 * Resolves by queries to the name servers, in no thread of the pool that all lookups of a process share: hosts whose name servers do not
 * answer delay only those who name them.
 */
export const queriedAddresses: Resolve = async (hostname) => {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const of = (found: PromiseSettledResult<string[]>, family: number) =>
    found.status === "fulfilled" ? found.value.map((address) => ({ address, family })) : [];
  return [...of(v4, 4), ...of(v6, 6)];
};

/** Whether a connection failed since the server's certificate is not trusted, by the error's code. */
export const isUntrusted = (code: unknown): boolean => typeof code === "string" && UNTRUSTED.test(code);

/** A lookup that fails when one of the host's addresses is rejected: a name with both kinds is an attack. */
export function ssrfSafeLookup(resolve: Resolve, mayConnect: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        if (addresses.length === 0) {
          return callback(Object.assign(new Error("the host has no address"), { code: "ENOTFOUND" }), "", 0);
        }
        if (addresses.some(({ address }) => !mayConnect(address))) {
          return callback(refused(), "", 0);
        }
        if (options.all) {
          return callback(null, addresses);
        }
        const [{ address, family }] = addresses as [LookupAddress];
        callback(null, address, family);
      },
      (error: Error) => callback(error, "", 0),
    );
  };
}

function redirectTarget({ status, headers }: FetchResponse, from: URL): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(status)) {
    return undefined;
  }
  const { location } = headers;
  const target = typeof location === "string" ? URL.parse(location, from.href) : null;
  if (target === null) {
    throw new GitError("ProviderUnavailable", "the Git server answers with a broken redirect");
  }
  return target;
}

/** The failure in words of ours. Those of sockets contain addresses, which would show a tenant the platform's network. */
function toGitError(error: unknown): GitError {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof GitError) {
      return one;
    }
    const { code } = one as NodeJS.ErrnoException;
    if (isUntrusted(code)) {
      return new GitError("CertificateUntrusted", `the Git server's certificate is not trusted (${code})`, {
        cause: error,
      });
    }
    if (one instanceof AggregateError) {
      const inner = one.errors.find((each) => each instanceof GitError);
      if (inner) {
        return inner as GitError;
      }
    }
  }
  const isLate = (error as Error).name === "TimeoutError" || (error as Error).name === "AbortError";
  return new GitError(
    "ProviderUnavailable",
    `the Git server ${isLate ? "does not answer in time" : "cannot be reached"}`,
    {
      cause: error,
    },
  );
}
