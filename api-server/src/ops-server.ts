import { createServer, type Server } from "node:http";
import type { Registry } from "prom-client";

export interface OpsServerOptions {
  registry: Registry;
  /** Whether the process may get requests. */
  isReady: () => boolean;
}

/** The port beside the API for the platform alone: `/metrics`, `/healthz` (alive), `/readyz` (may get requests). */
export function createOpsServer(options: OpsServerOptions): Server {
  return createServer((request, response) => {
    const answer = (status: number, text: string, type = "text/plain; charset=utf-8") =>
      response.writeHead(status, { "content-type": type }).end(text);
    switch (request.url) {
      case "/healthz":
        answer(200, "ok\n");
        break;
      case "/readyz":
        if (options.isReady()) answer(200, "ok\n");
        else answer(503, "not ready\n");
        break;
      case "/metrics":
        options.registry.metrics().then(
          (text) => answer(200, text, options.registry.contentType),
          () => answer(500, "metrics failed\n"),
        );
        break;
      default:
        answer(404, "not found\n");
    }
  });
}
