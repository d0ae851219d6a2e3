import type { FastifyInstance } from "fastify";
import type { Services } from "../services.ts";

/**
 * After each answer: metrics always, an audit line and a log line for writes, a debug line for reads.
 * A request's headers and bodies are never logged.
 */
export function installRequestLog(app: FastifyInstance, services: Services): void {
  const unknownRoute = services.metrics.operation("none");
  app.addHook("onResponse", (request, reply, done) => {
    const { operation, principal } = request;
    const status = reply.statusCode;
    (operation?.observation ?? unknownRoute).observe(status, reply.elapsedTime / 1000);
    if (operation?.audited && principal) {
      const projectId = request.writtenProjectId ?? request.project?.id ?? null;
      services.audit.record({
        organizationId: principal.organizationId,
        actor: principal.actor,
        operation: operation.operationId,
        projectId,
        sourceIp: request.ip,
        status,
        code: request.failureCode ?? null,
      });
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
