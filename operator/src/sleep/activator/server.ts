/** The server to which the ingress sends requests for projects that sleep. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ACTIVATOR_HEADER, PROBE_USER_AGENT } from "@slipway/crds";
import { type Clock, type Logger, systemClock } from "@slipway/process";
import { RequestBounds } from "./bounds.ts";
import { connectInstance, type Instances, NoInstanceError } from "./connect.ts";
import { forward, forwardUpgrade } from "./forward.ts";
import type { ActivatorMetrics } from "./metrics.ts";
import { hostnameOf, type SleepingProject } from "./projects.ts";

export interface ActivatorServerOptions extends Omit<Instances, "wake"> {
  find: (host: string) => SleepingProject | undefined;
  /** Has a project woken. @param isHeld whether the request still waits */
  wake: (project: SleepingProject, isHeld: () => boolean) => void;
  metrics: ActivatorMetrics;
  log: Logger;
  bounds?: RequestBounds;
  holdMs?: number;
  clock?: Clock;
}

/** Longer than the ingress keeps a connection that it does not use: it must never use one that is being closed. */
const KEEP_ALIVE_MS = 120_000;
const HEADERS_MS = 30_000;

/** Ends an exchange with a status of the activator's own. */
type End = (status: number, text: string) => void;

export function activatorServer(options: ActivatorServerOptions): Server {
  const exchanges = new Exchanges(options);
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: HEADERS_MS, requestTimeout: 0 },
    (request, response) => void exchanges.answer(request, response),
  );
  server.on("upgrade", (request: IncomingMessage, client: Duplex, head: Buffer) => {
    void exchanges.upgrade(request, client, head);
  });
  return server;
}

class Exchanges {
  readonly #options: ActivatorServerOptions;
  readonly #bounds: RequestBounds;

  constructor(options: ActivatorServerOptions) {
    this.#options = options;
    this.#bounds = options.bounds ?? new RequestBounds();
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers["user-agent"] === PROBE_USER_AGENT) {
      response.writeHead(204, { [ACTIVATOR_HEADER]: "1" }).end();
      return;
    }
    const end: End = (status, text) => {
      if (response.headersSent) {
        response.destroy();
        return;
      }
      // What is left of the body is not read: the connection cannot be used again.
      response.writeHead(status, {
        "content-type": "text/plain; charset=utf-8",
        connection: "close",
        ...(status === 503 ? { "retry-after": "5" } : {}),
      });
      response.end(text);
    };
    await this.#exchange(request, response, end, (socket) => forward(request, response, socket));
  }

  async upgrade(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    client.on("error", () => client.destroy());
    const end: End = (status, text) => {
      client.end(`HTTP/1.1 ${status} ${text}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    };
    await this.#exchange(request, client, end, (socket) => forwardUpgrade(request, client, head, socket));
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
      metrics.requests.inc({ result: "unknown" });
      end(404, "Not Found");
      return;
    }
    const gone = new AbortController();
    closing.once("close", () => gone.abort());
    const release = this.#bounds.admit(project.organization, project.id, () => {
      end(503, "Service Unavailable");
      gone.abort();
    });
    if (release === undefined) {
      metrics.requests.inc({ result: "refused" });
      end(503, "Service Unavailable");
      return;
    }
    const startedAt = clock.monotonic();
    try {
      const socket = await this.#connect(project, { clock, signal: gone.signal, holdMs });
      gone.signal.addEventListener("abort", () => socket.destroy());
      metrics.waits.observe((clock.monotonic() - startedAt) / 1_000);
      await send(socket).finally(() => socket.destroy());
      metrics.requests.inc({ result: "forwarded" });
    } catch (error) {
      const isTimeout = error instanceof NoInstanceError;
      metrics.requests.inc({ result: gone.signal.aborted ? "abandoned" : isTimeout ? "timeout" : "failed" });
      if (!gone.signal.aborted) {
        log.debug({ err: error }, "a request was not answered");
        end(isTimeout ? 503 : 502, isTimeout ? "Service Unavailable" : "Bad Gateway");
      }
    } finally {
      release();
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
}
