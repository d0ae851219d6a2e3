import type { IncomingMessage } from "node:http";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { failures } from "./catalog.ts";
import { Failure } from "./failure.ts";

/** How long the rest of a refused body is read, in milliseconds. */
const HEAR_OUT_MS = 2_000;

/** What Fastify itself refuses, by its error code. */
function fromFramework(error: FastifyError, request: FastifyRequest): Failure {
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return failures.bodyTooLarge(request.routeOptions.bodyLimit);
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return failures.mediaTypeUnsupported();
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
      return failures.malformedBody("the body is empty");
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return failures.malformedRequest("Content-Length does not match the body");
    case "FST_ERR_BAD_URL":
    case "FST_ERR_ASYNC_CONSTRAINT":
      return failures.malformedRequest("the path is not a valid URL path");
    case "FST_ERR_MAX_PARAM_LENGTH":
      return failures.routeNotFound();
    default:
      if (error.statusCode === 400) {
        return failures.malformedBody(`the body is not valid JSON: ${error.message}`);
      }
      if (error.statusCode && error.statusCode < 500) {
        return failures.malformedRequest(error.message);
      }
      return failures.internal(error);
  }
}

/** Any thrown value as the failure that the client sees. */
export function toFailure(error: unknown, request: FastifyRequest): Failure {
  if (error instanceof Failure) {
    return error;
  }
  if (error instanceof Error) {
    return fromFramework(error as FastifyError, request);
  }
  return failures.internal(error);
}

/** Writes the failure envelope. The one place that renders a refusal. */
export function renderFailure(failure: Failure, request: FastifyRequest, reply: FastifyReply): void {
  request.failureCode = failure.code;
  if (failure.cause !== undefined) {
    request.log[failure.status >= 500 ? "error" : "warn"](
      {
        err: failure.cause,
        reqId: request.id,
        operation: request.operation?.operationId,
        code: failure.code,
      },
      "request failed",
    );
  }
  const answer = () =>
    void reply
      .code(failure.status)
      .headers(failure.headers)
      .header("content-type", "application/json; charset=utf-8")
      .send(JSON.stringify(failure.toBody()));
  if (failure.status !== 413) {
    answer();
    return;
  }
  // A connection that is closed while its client still sends is reset, and the answer with it: a proxy would report a broken
  // server in its place. So what arrives is read and discarded before it, and after it until the request's timeout.
  reply.removeHeader("connection");
  afterBody(request.raw, answer);
}

/** Calls back once a request's body has been received, or its client has disconnected, or the time for it has ended. */
function afterBody(request: IncomingMessage, then: () => void): void {
  const done = () => {
    clearTimeout(limit);
    request.off("end", done).off("close", done);
    then();
  };
  const limit = setTimeout(done, HEAR_OUT_MS);
  request.once("end", done).once("close", done).resume();
  if (request.readableEnded || request.destroyed) {
    done();
  }
}

/** Routes every error and every unknown path through {@link renderFailure}. */
export function installErrorHandling(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => renderFailure(toFailure(error, request), request, reply));
  app.setNotFoundHandler((request, reply) => renderFailure(failures.routeNotFound(), request, reply));
}
