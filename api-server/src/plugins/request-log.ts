import type { FastifyInstance } from "fastify";
import { projectOfPath } from "../http/audit.ts";
import type { Services } from "../services.ts";

/** As nginx has it: the client closed the request. */
const CLIENT_GONE = 499;

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
