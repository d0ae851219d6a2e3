import type { Annotate } from "@slipway/controller-runtime";
import { annotations, GROUP } from "@slipway/crds";
import { parseTraceparent, type Tracing } from "@slipway/process/tracing";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Services } from "../services.ts";
import { projectOfPath } from "./audit.ts";

/** Traces and logs requests. */

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
    ...aboutCall(request),
  };
}

function aboutCall(request: FastifyRequest) {
  return {
    "slipway.operation": request.operation?.operationId,
    "slipway.organization": request.principal?.organizationId,
    "slipway.project": request.writtenProjectId ?? projectOfPath(request) ?? undefined,
    "slipway.failure_code": request.failureCode,
  };
}

/** As nginx has it: the client closed the request. */
export const CLIENT_GONE = 499;

/** The same of a request whose connection becomes a WebSocket, as far as its answer: what follows is a session. */
export function observeUpgrade(
  request: FastifyRequest,
  { tracing }: Pick<Services, "tracing">,
  status: number,
  seconds: number,
): void {
  const { operation, span } = request;
  operation?.observation.observe(status, seconds);
  if (span) {
    span.set({ ...aboutCall(request), "http.response.status_code": status });
    tracing?.end(span);
  }
}

/**
 * After each answer: metrics always, an audit line and a log line for writes, a debug line for reads.
 * A request's headers and bodies are never logged.
 */
export function installRequestLog(
  app: FastifyInstance,
  services: Pick<Services, "audit" | "logger" | "metrics">,
): void {
  const unknownRoute = services.metrics.operation("none");
  app.addHook("onResponse", (request, reply, done) => {
    const { operation, principal } = request;
    // The client disconnected before it was answered.
    const status = reply.raw.headersSent ? reply.statusCode : CLIENT_GONE;
    (operation?.observation ?? unknownRoute).observe(status, reply.elapsedTime / 1000);
    if (operation?.audited && principal) {
      const projectId = request.writtenProjectId ?? projectOfPath(request);
      // A call that was audited before its handler has a row already, and gets its outcome from the handler.
      if (request.auditId === undefined) {
        services.audit.record({
          organizationId: principal.organizationId,
          actor: principal.actor,
          operation: operation.operationId,
          projectId,
          sourceIp: request.ip,
          status,
          code: request.failureCode ?? null,
        });
      }
      const { actor, organizationId } = principal;
      request.log.info(
        { reqId: request.id, operation: operation.operationId, status, actor, organizationId, projectId },
        "write answered",
      );
    } else if (services.logger.isLevelEnabled("debug")) {
      request.log.debug({ reqId: request.id, operation: operation?.operationId, status }, "request answered");
    }
    done();
  });
}
