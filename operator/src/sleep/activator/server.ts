/** The server to which the ingress sends requests for projects that sleep. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ACTIVATOR_HEADER, PROBE_USER_AGENT } from "@slipway/crds";
import { type Clock, type Logger, systemClock } from "@slipway/process";
import { FORWARDED, RequestBounds } from "./bounds.ts";
import { connectInstance, type Instances, NoInstanceError } from "./connect.ts";
import { forward, forwardUpgrade, MAX_HEADER_BYTES } from "./forward.ts";
import type { ActivatorMetrics } from "./metrics.ts";
import { hostnameOf, type SleepingProject } from "./projects.ts";

export interface ActivatorServerOptions extends Omit<Instances, "wake"> {
  find: (host: string) => SleepingProject | undefined;
  /** Has a project woken. @param isHeld whether the request still waits */
  wake: (project: SleepingProject, isHeld: () => boolean) => void;
  metrics: ActivatorMetrics;
  log: Logger;
  /** Of requests that wait, and of those that are forwarded. */
  bounds?: RequestBounds;
  forwarded?: RequestBounds;
  /** Whether the process is to end: connections are not used again. */
  isStopping?: () => boolean;
  holdMs?: number;
  clock?: Clock;
}

/** Longer than the ingress keeps a connection that it does not use: it must never use one that is being closed. */
const KEEP_ALIVE_MS = 120_000;
const HEADERS_MS = 30_000;

/** Ends an exchange with a status of the activator's own. */
type End = (status: number, text: string) => void;

const RETRY_AFTER = "5";

export function activatorServer(options: ActivatorServerOptions): Server {
  const exchanges = new Exchanges(options);
  const server = createServer(
    {
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_MS,
      requestTimeout: 0,
      maxHeaderSize: MAX_HEADER_BYTES,
      // Clients offer another protocol with any request; what has a body is a request all the same.
      shouldUpgradeCallback: ({ headers }) =>
        headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) === 0,
    },
    (request, response) => void exchanges.answer(request, response),
  );
  server.on("upgrade", (request: IncomingMessage, client: Duplex, head: Buffer) => {
    void exchanges.upgrade(request, client, head);
  });
  return server;
}

class Exchanges {
  readonly #options: ActivatorServerOptions;
  readonly #held: RequestBounds;
  readonly #forwarded: RequestBounds;

  constructor(options: ActivatorServerOptions) {
    this.#options = options;
    this.#held = options.bounds ?? new RequestBounds();
    this.#forwarded = options.forwarded ?? new RequestBounds(FORWARDED);
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { isStopping = () => false } = this.#options;
    const end: End = (status, text) => {
      if (response.headersSent) {
        response.destroy();
        return;
      }
      // What is left of the body is not read: the connection cannot be used again.
      response.writeHead(status, {
        "content-type": "text/plain; charset=utf-8",
        connection: "close",
        ...(status === 503 ? { "retry-after": RETRY_AFTER } : {}),
      });
      response.end(text);
    };
    if (request.headers["user-agent"] === PROBE_USER_AGENT) {
      // Whether it would forward a request: the operator stops instances by this answer.
      if (this.#options.find(hostnameOf(request.headers.host)) === undefined) {
        end(503, "Service Unavailable");
      } else {
        response.writeHead(204, { [ACTIVATOR_HEADER]: "1" }).end();
      }
      return;
    }
    await this.#exchange(request, response, end, (socket) => forward(request, response, socket, isStopping));
  }

  async upgrade(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    client.on("error", () => client.destroy());
    let isAnswered = false;
    const end: End = (status, text) => {
      if (isAnswered) {
        client.destroy();
        return;
      }
      const retry = status === 503 ? `retry-after: ${RETRY_AFTER}\r\n` : "";
      client.end(`HTTP/1.1 ${status} ${text}\r\n${retry}connection: close\r\ncontent-length: 0\r\n\r\n`);
    };
    await this.#exchange(request, client, end, (socket) =>
      forwardUpgrade(request, client, head, socket, () => {
        isAnswered = true;
      }),
    );
  }

  async #exchange(
    request: IncomingMessage,
    closing: ServerResponse | Duplex,
    end: End,
    send: (socket: Socket) => Promise<void>,
  ): Promise<void> {
    const { find, metrics, log, clock = systemClock, holdMs } = this.#options;
    const project = find(hostnameOf(request.headers.host));
    if (project === undefined) {
      // The ingress has sent it here: its project is known in a moment, or was until a moment ago.
      metrics.requests.inc({ result: "unknown" });
      end(503, "Service Unavailable");
      return;
    }
    const gone = new AbortController();
    closing.once("close", () => gone.abort());
    const admit = (bounds: RequestBounds) =>
      bounds.admit(project.organization, project.id, () => {
        end(503, "Service Unavailable");
        gone.abort();
      });
    const refuse = () => {
      metrics.requests.inc({ result: "refused" });
      end(503, "Service Unavailable");
    };
    const releaseHeld = admit(this.#held);
    if (releaseHeld === undefined) {
      refuse();
      return;
    }
    const startedAt = clock.monotonic();
    try {
      const socket = await this.#connect(project, { clock, signal: gone.signal, holdMs }).finally(
        releaseHeld,
      );
      gone.signal.addEventListener("abort", () => socket.destroy());
      const releaseForwarded = admit(this.#forwarded);
      if (releaseForwarded === undefined) {
        socket.destroy();
        refuse();
        return;
      }
      metrics.waits.observe((clock.monotonic() - startedAt) / 1_000);
      const done = new AbortController();
      void this.#keepAwake(project, done.signal);
      await send(socket).finally(() => {
        done.abort();
        socket.destroy();
        releaseForwarded();
      });
      metrics.requests.inc({ result: "forwarded" });
    } catch (error) {
      const isTimeout = error instanceof NoInstanceError;
      metrics.requests.inc({ result: gone.signal.aborted ? "abandoned" : isTimeout ? "timeout" : "failed" });
      if (!gone.signal.aborted) {
        log.debug({ err: error }, "a request was not answered");
        end(isTimeout ? 503 : 502, isTimeout ? "Service Unavailable" : "Bad Gateway");
      }
    }
  }

  async #connect(
    project: SleepingProject,
    how: { clock: Clock; signal: AbortSignal; holdMs?: number },
  ): Promise<Socket> {
    const { wake, metrics } = this.#options;
    let isHeld = true;
    metrics.held.inc();
    const instances = { ...this.#options, wake: (now: SleepingProject) => wake(now, () => isHeld) };
    return connectInstance(project, instances, how).finally(() => {
      isHeld = false;
      metrics.held.dec();
    });
  }

  /** A project does not fall asleep under a request that is being forwarded to it. Until the signal aborts. Never rejects. */
  async #keepAwake(project: SleepingProject, signal: AbortSignal): Promise<void> {
    const { changed, current, wake } = this.#options;
    while (!signal.aborted) {
      const now = current(project);
      if (now?.isEntering) {
        wake(now, () => !signal.aborted);
      }
      await changed(project, signal);
    }
  }
}
