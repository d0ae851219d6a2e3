import { createServer, type Server } from "node:http";
import type { Registry } from "prom-client";

/** The port for the platform alone: `/metrics`, `/healthz` (alive), `/readyz` (reads logs). */
export function createOpsServer(registry: Registry, isReady: () => boolean): Server {
  return createServer((request, response) => {
    const answer = (status: number, text: string, type = "text/plain; charset=utf-8") =>
      response.writeHead(status, { "content-type": type }).end(text);
    if (request.url === "/healthz") answer(200, "ok\n");
    else if (request.url === "/readyz") answer(isReady() ? 200 : 503, isReady() ? "ok\n" : "not ready\n");
    else if (request.url === "/metrics") {
      registry.metrics().then(
        (text) => answer(200, text, registry.contentType),
        () => answer(500, "metrics failed\n"),
      );
    } else answer(404, "not found\n");
  });
}
