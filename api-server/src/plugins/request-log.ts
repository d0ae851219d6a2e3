import type { FastifyInstance } from "fastify";
import type { Services } from "../services.ts";

/**
 * After each answer: metrics always, an audit line and a log line for writes, a debug line for reads.
 * A request's headers and bodies are never logged.
 */
export function installRequestLog(app: FastifyInstance, services: Services): void {
  const unknownRoute = services.metrics.operation("none");
  app.addHook("onResponse", (request, reply, done) => {
    const { observation, audited } = request.routeOptions.config;
    const status = reply.statusCode;
    (observation ?? unknownRoute).observe(status, reply.elapsedTime / 1000);
    const { principal } = request;
    if (audited && principal) {
      const projectId = request.writtenProjectId ?? request.project?.id ?? null;
      services.audit.record({
        organizationId: principal.organizationId,
        actor: principal.actor,
        operation: request.operationId ?? "none",
        projectId,
        sourceIp: request.ip,
        status,
        code: request.failureCode ?? null,
      });
      const { actor, organizationId } = principal;
      request.log.info(
        { reqId: request.id, operation: request.operationId, status, actor, organizationId, projectId },
        "write answered",
      );
    } else if (services.logger.isLevelEnabled("debug")) {
      request.log.debug({ reqId: request.id, operation: request.operationId, status }, "request answered");
    }
    done();
  });
}
