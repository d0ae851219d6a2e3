import type { Annotate } from "@slipway/controller-runtime";
import { annotations, GROUP } from "@slipway/crds";
import { parseTraceparent, type Tracing } from "@slipway/process/tracing";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { projectOfPath } from "../http/audit.ts";

/** How long work belongs to a call's span after its answer, or after its client has disconnected: no change takes longer. */
const LINGER_MS = 30_000;

/**
 * A span for every request to `/v1` that is sampled, and everything that the request does is a part of it. Each begins a trace
 * of its own: a client's `traceparent` is not continued, since anyone may send one; it becomes a link.
 */
export function installTracing(app: FastifyInstance, tracing: Tracing): void {
  app.decorateRequest("span", undefined);
  app.addHook("onRequest", (request, _reply, done) => {
    if (!isV1(request.url)) {
      return done();
    }
    const { method } = request;
    const route = request.routeOptions.url;
    const link = request.headers.traceparent;
    const span = tracing.begin({
      name: route === undefined ? method : `${method} ${route}`,
      kind: "server",
      link: parseTraceparent(link) && String(link),
      attributes: {
        "http.request.method": method,
        "http.route": route,
        "url.scheme": "http",
        "slipway.request_id": request.id,
      },
    });
    if (!span) {
      return done();
    }
    request.span = span;
    tracing.within(span, done);
  });
  // Whatever was waited for until the body was there belongs to its socket.
  app.addHook("preHandler", (request, _reply, done) => {
    if (request.span) {
      tracing.within(request.span, done);
    } else {
      done();
    }
  });
  app.addHook("onResponse", (request, reply, done) => {
    const { span } = request;
    if (span) {
      span.set(outcomeOf(request, reply));
      tracing.end(span, { failed: reply.statusCode >= 500, lingerMs: LINGER_MS });
    }
    done();
  });
}

/** Annotates the platform's own resources with the trace of the call that writes them, and removes an earlier one's. */
export function traceWrites(tracing: Tracing): Annotate {
  return ({ group }) =>
    group === GROUP ? { [annotations.traceparent]: tracing.current()?.traceparent ?? null } : undefined;
}

const isV1 = (url: string): boolean => url === "/v1" || /^\/v1[/?]/.test(url);

/** What is known once it was answered. Nothing that a client wrote but ids that are checked. */
function outcomeOf(request: FastifyRequest, reply: FastifyReply) {
  const isAnswered = reply.raw.headersSent;
  const status = isAnswered ? reply.statusCode : undefined;
  return {
    "http.response.status_code": status,
    "error.type": isAnswered ? (reply.statusCode >= 500 ? String(status) : undefined) : "client_gone",
    "slipway.operation": request.operation?.operationId,
    "slipway.organization": request.principal?.organizationId,
    "slipway.project": request.writtenProjectId ?? projectOfPath(request) ?? undefined,
    "slipway.failure_code": request.failureCode,
  };
}
