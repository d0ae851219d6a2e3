import { createHash } from "node:crypto";
import { type Clock, sleep, systemClock } from "@slipway/process";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import type { CredentialSource, Credentials } from "./credentials.ts";
import { isConflict, KubeError } from "./errors.ts";
import { type ExecResult, exec } from "./exec.ts";
import { headersInTime, unlessAborted } from "./in-time.ts";
import { type Query, queryString } from "./paths.ts";
import { networkError, statusError } from "./response-errors.ts";

/** One HTTP request to the apiserver. */
export interface HttpRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path within the server, such as `/api/v1/pods`. */
  path: string;
  query?: Query;
  body?: string;
  contentType?: string;
  accept?: string;
  signal?: AbortSignal;
  /**
   * Longest wait for headers, that for a connection included, and longest silence within the body, in milliseconds. 0: no
   * limit on the body.
   */
  timeoutMs?: number;
  /**
   * The body has no end, as that of a watch: a connection of its own, and any silence in it is
   * borne. `timeoutMs` is for the headers alone.
   */
  streams?: boolean;
  /** Label of metrics; the method in lower case when absent (`watch` for watches). */
  verb?: string;
}

/** A command to be run in a container. */
export interface ExecTransportRequest {
  path: string;
  /** Pairs: `command` is repeated for each word. */
  query: readonly (readonly [string, string])[];
  stdin?: string;
  signal?: AbortSignal;
  timeoutMs?: number;
}

/** What is reported of each request once its headers came, or it failed (`status` 0). */
export interface RequestObservation {
  verb: string;
  method: string;
  host: string;
  path: string;
  status: number;
  /** Milliseconds until the headers. */
  durationMs: number;
}

export interface TransportOptions {
  credentials: CredentialSource;
  userAgent?: string;
  clock?: Clock;
  /** Default of {@link HttpRequest.timeoutMs}: 30,000. */
  timeoutMs?: number;
  /** Connections kept for requests other than watches and streams. */
  connections?: number;
  onRequest?: (observation: RequestObservation) => void;
}

/** How often an answer with `Retry-After` (429, 5xx) is tried again; such answers come before any processing. */
const MAX_RETRY_AFTER = 3;
const MAX_RETRY_AFTER_MS = 10_000;

/**
 * How often a write is sent again that the quota admission refused because somebody else wrote the ResourceQuota meanwhile, and
 * the mean wait before the first time, in milliseconds: 50, 100, 200 and so on, less than 4 s in all.
 */
const MAX_QUOTA_CONFLICTS = 6;
const QUOTA_CONFLICT_MS = 50;

interface Pools {
  /** The credentials object last seen; the same object means the same material. */
  credentials: Credentials;
  fingerprint: string;
  requests: Dispatcher;
  watches: Dispatcher;
}

/** Keep-alive connections to one apiserver, with authentication, timeouts, retries that are safe, and observation. */
export class Transport {
  readonly #options: TransportOptions;
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #origin: string;
  readonly host: string;
  #pools: Pools | undefined;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const url = new URL(options.credentials.server);
    this.host = url.host;
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, "");
  }

  /** Sends and reads the whole body as text. @throws KubeError for every status ≥ 400 and for no answer. */
  async text(request: HttpRequest): Promise<string> {
    const response = await this.send(request);
    try {
      return await response.body.text();
    } catch (error) {
      throw networkError(request, error);
    }
  }

  /** Sends and parses the body as JSON. @throws KubeError likewise, with reason `InvalidResponse` when it is no JSON. */
  async json<T>(request: HttpRequest): Promise<T> {
    const text = await this.text(request);
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      const message = `${request.method} ${request.path}: the response is not JSON`;
      throw new KubeError({ status: 0, reason: "InvalidResponse", message, cause });
    }
  }

  /** Sends and reads the first `limit` bytes of the body; a longer one is cut off unread. @throws KubeError */
  async bytes(request: HttpRequest, limit: number): Promise<Buffer> {
    const response = await this.send(request);
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of response.body as AsyncIterable<Buffer>) {
        chunks.push(chunk);
        size += chunk.length;
        if (size >= limit) {
          break;
        }
      }
    } catch (error) {
      throw networkError(request, error);
    }
    return Buffer.concat(chunks).subarray(0, limit);
  }

  /** Sends and returns once the headers are here; the caller must read or destroy the body. @throws KubeError */
  async send(request: HttpRequest): Promise<Dispatcher.ResponseData> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#once(request);
      } catch (error) {
        if (!(error instanceof KubeError) || request.signal?.aborted) {
          throw error;
        }
        if (error.status === 401 && attempt === 0) {
          // A rotated token: read it again, once.
          this.#options.credentials.invalidate();
        } else if (isStaleConnection(error, request) && attempt === 0) {
          // The server closed an idle connection just as a repeatable request went out on it.
        } else if (isQuotaConflict(error, request) && attempt < MAX_QUOTA_CONFLICTS) {
          // Admission refuses before anything is written. Waits differ, so that those who met do not meet again.
          const waitMs = QUOTA_CONFLICT_MS * 2 ** attempt * (0.5 + Math.random());
          await sleep(this.#clock, waitMs, request.signal);
        } else if (error.retryAfterMs !== undefined && attempt < MAX_RETRY_AFTER) {
          await sleep(this.#clock, Math.min(error.retryAfterMs, MAX_RETRY_AFTER_MS), request.signal);
        } else {
          throw error;
        }
      }
    }
  }

  /** Runs a command over a connection of its own. A proxy is not used. @throws KubeError */
  async exec({ path, query, stdin, signal, timeoutMs }: ExecTransportRequest): Promise<ExecResult> {
    const started = this.#clock.monotonic();
    let status = 0;
    try {
      const url = new URL(`${this.#origin}${this.#prefix}${path}`);
      for (const [name, value] of query) {
        url.searchParams.append(name, value);
      }
      const result = await exec({
        url,
        credentials: await this.#options.credentials.get(),
        userAgent: this.#options.userAgent ?? "controller-runtime",
        stdin,
        signal,
        timeoutMs: timeoutMs ?? this.#options.timeoutMs ?? 30_000,
      });
      status = 101;
      return result;
    } catch (error) {
      if (error instanceof KubeError) {
        status = error.status;
      }
      if (status === 401) {
        this.#options.credentials.invalidate();
      }
      throw error;
    } finally {
      const durationMs = this.#clock.monotonic() - started;
      this.#options.onRequest?.({ verb: "exec", method: "GET", host: this.host, path, status, durationMs });
    }
  }

  /** Closes every connection. */
  async close(): Promise<void> {
    const pools = this.#pools;
    this.#pools = undefined;
    if (pools) {
      await Promise.all([pools.requests.destroy(), pools.watches.destroy()]);
    }
  }

  async #once(request: HttpRequest): Promise<Dispatcher.ResponseData> {
    request.signal?.throwIfAborted();
    const started = this.#clock.monotonic();
    let status = 0;
    try {
      const credentials = await this.#options.credentials.get();
      const response = await this.#dispatch(request, credentials);
      status = response.statusCode;
      if (status < 400) {
        return response;
      }
      throw await statusError(request, response);
    } catch (error) {
      if (error instanceof KubeError) {
        throw error;
      }
      throw networkError(request, error);
    } finally {
      this.#options.onRequest?.({
        verb: request.verb ?? request.method.toLowerCase(),
        method: request.method,
        host: this.host,
        path: request.path,
        status,
        durationMs: this.#clock.monotonic() - started,
      });
    }
  }

  #dispatch(request: HttpRequest, credentials: Credentials): Promise<Dispatcher.ResponseData> {
    const pools = this.#poolsFor(credentials);
    const timeout = request.timeoutMs ?? this.#options.timeoutMs ?? 30_000;
    const headers: Record<string, string> = {
      ...credentials.headers,
      accept: request.accept ?? "application/json",
      "user-agent": this.#options.userAgent ?? "controller-runtime",
    };
    if (request.body !== undefined) {
      headers["content-type"] = request.contentType ?? "application/json";
    }
    const headersTimeout = timeout === 0 ? 30_000 : timeout;
    const send = (pool: Dispatcher, signal: AbortSignal | null) =>
      pool.request({
        origin: this.#origin,
        path: `${this.#prefix}${request.path}${queryString(request.query)}`,
        method: request.method,
        headers,
        body: request.body ?? null,
        signal,
        headersTimeout,
        bodyTimeout: request.streams ? 0 : timeout,
      });
    // A watch has a connection of its own.
    if (request.verb === "watch") {
      return unlessAborted(send(pools.watches, request.signal ?? null), request.signal);
    }
    const pool = request.streams ? pools.watches : pools.requests;
    return headersInTime(headersTimeout, request.signal, (signal) => send(pool, signal));
  }

  /** The connection pools of these credentials; new ones when the TLS material changed. */
  #poolsFor(credentials: Credentials): Pools {
    const old = this.#pools;
    if (old?.credentials === credentials) {
      return old;
    }
    const fingerprint = createHash("sha256").update(JSON.stringify(credentials.tls)).digest("hex");
    if (old?.fingerprint === fingerprint) {
      old.credentials = credentials;
      return old;
    }
    const pool = (connections: number | null): Dispatcher => {
      const common = {
        // One HTTP/1.1 connection a request: a dead one is noticed by its own timeout and takes nothing else along.
        allowH2: false,
        connections,
        pipelining: 1,
        keepAliveTimeout: 55_000,
        keepAliveMaxTimeout: 55_000,
      };
      const connect = { ...credentials.tls, timeout: 10_000, keepAlive: true, keepAliveInitialDelay: 30_000 };
      const uri = this.#options.credentials.proxyUrl;
      return uri
        ? new ProxyAgent({ ...common, uri, requestTls: connect } as ProxyAgent.Options)
        : new Agent({ ...common, connect } as Agent.Options);
    };
    this.#pools = {
      credentials,
      fingerprint,
      requests: pool(this.#options.connections ?? 32),
      watches: pool(null),
    };
    // Requests under way on the old pools finish; watches end when the server ends them.
    if (old) {
      void Promise.allSettled([old.requests.close(), old.watches.close()]);
    }
    return this.#pools;
  }
}

function isStaleConnection(error: KubeError, request: HttpRequest): boolean {
  const repeatable = request.method === "GET" || request.contentType === "application/apply-patch+yaml";
  return (
    repeatable && (error.code === "UND_ERR_SOCKET" || error.code === "ECONNRESET" || error.code === "EPIPE")
  );
}

/** A conflict that is not about the request's own object, but about the quota that counts it. */
function isQuotaConflict(error: KubeError, { path }: HttpRequest): boolean {
  const quotas = "resourcequotas";
  return isConflict(error) && error.body?.details?.kind === quotas && !path.includes(`/${quotas}`);
}
