import { type Clock, sleep, systemClock } from "@slipway/process";
import type { Dispatcher } from "undici";
import { ConnectionPools } from "./connection-pools.ts";
import type { CredentialSource, Credentials } from "./credentials.ts";
import { KubeError, networkError, statusError } from "./errors.ts";
import { type ExecResult, exec } from "./exec.ts";
import { type ExecSocket, openExec } from "./exec-connection.ts";
import {
  type ExecAddress,
  type ExecStreamRequest,
  type ExecTransportRequest,
  type HttpRequest,
  queryString,
} from "./http-request.ts";
import { headersInTime, unlessAborted } from "./in-time.ts";
import { retryDelay } from "./retries.ts";

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

/** Keep-alive connections to one apiserver, with authentication, timeouts, retries that are safe, and observation. */
export class Transport {
  readonly #options: TransportOptions;
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #origin: string;
  readonly host: string;
  readonly #pools: ConnectionPools;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#pools = new ConnectionPools(options.credentials.proxyUrl, options.connections);
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
        const waitMs = retryDelay(error, request, attempt);
        if (waitMs === undefined) {
          throw error;
        }
        if (error.status === 401) {
          this.#options.credentials.invalidate();
        }
        if (waitMs > 0) {
          await sleep(this.#clock, waitMs, request.signal);
        }
      }
    }
  }

  /** Runs a command over a connection of its own. A proxy is not used. @throws KubeError */
  exec({ path, query, ...streams }: ExecTransportRequest): Promise<ExecResult> {
    return this.#observeExec({ path, query }, (common) =>
      exec({ ...common, ...streams, timeoutMs: this.#timeoutMs(streams) }),
    );
  }

  /** Starts a command likewise, and returns its socket, paused, once the apiserver has accepted. @throws KubeError */
  execStream({ path, query, signal, ...limits }: ExecStreamRequest): Promise<ExecSocket> {
    return this.#observeExec({ path, query }, (common) =>
      openExec({ ...common, ...limits, timeoutMs: this.#timeoutMs(limits) }, signal),
    );
  }

  async #observeExec<T>(
    { path, query }: ExecAddress,
    run: (common: { url: URL; credentials: Credentials; userAgent: string }) => Promise<T>,
  ): Promise<T> {
    const started = this.#clock.monotonic();
    let status = 0;
    try {
      const url = new URL(`${this.#origin}${this.#prefix}${path}`);
      for (const [name, value] of query) {
        url.searchParams.append(name, value);
      }
      const credentials = await this.#options.credentials.get();
      const userAgent = this.#options.userAgent ?? "controller-runtime";
      const result = await run({ url, credentials, userAgent });
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

  #timeoutMs({ timeoutMs }: { timeoutMs?: number }): number {
    return timeoutMs ?? this.#options.timeoutMs ?? 30_000;
  }

  /** Closes every connection. */
  close(): Promise<void> {
    return this.#pools.close();
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
    const pools = this.#pools.of(credentials);
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
        // Otherwise the connection is closed after a DELETE with a body, which servers need not read; apiservers do.
        reset: false,
        bodyTimeout: request.streams ? 0 : timeout,
      });
    // A watch has a connection of its own.
    if (request.verb === "watch") {
      return unlessAborted(send(pools.watches, request.signal ?? null), request.signal);
    }
    const pool = request.streams ? pools.watches : pools.requests;
    return headersInTime(headersTimeout, request.signal, (signal) => send(pool, signal));
  }
}
