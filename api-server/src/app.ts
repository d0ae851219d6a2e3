import "./fastify.ts";
import type { ServerResponse } from "node:http";
import { type FastifyInstance, fastify, LogController } from "fastify";
import type { Logger } from "pino";
import { failures } from "./errors/catalog.ts";
import { installErrorHandling, renderFailure, toFailure } from "./errors/handler.ts";
import { bodyBudgets, DEFAULT_BODY_LIMIT } from "./http/body-budget.ts";
import {
  CLIENT_LIMITS,
  type ClientLimits,
  installClientLimits,
  type LoadShedder,
} from "./http/client-limits.ts";
import { installJsonBody, installRawBody } from "./http/json-body.ts";
import { installOtherMethods, registerRoute } from "./http/register.ts";
import { installRequestLog, installTracing } from "./http/telemetry.ts";
import { installUpgrades, upgradesOf } from "./http/upgrades.ts";
import { routes } from "./routes.ts";
import type { Services } from "./services.ts";

/** Builds the Fastify application: limits, hooks, routes and error handling. */

/** How long clients may take, in milliseconds: slow ones do not keep a connection for long. */
export interface ClientTimeouts {
  /** Until the headers are received. */
  headersMs: number;
  /** Until the whole request is received. */
  requestMs: number;
  /** How often both are checked. */
  checkMs: number;
  /** Until the client reads more of an answer: longer than the heartbeat of streams. */
  stalledResponseMs: number;
}
const TIMEOUTS: ClientTimeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  checkMs: 2_000,
  stalledResponseMs: 30_000,
};

export interface AppOptions {
  timeouts?: ClientTimeouts | undefined;
  clients?: ClientLimits | undefined;
  /** Decides when new requests are refused; without it none are. */
  shedder?: Pick<LoadShedder, "isOverloaded"> | undefined;
}

/**
 * The `/v1` application over the given services. It does not listen: `main.ts` does, and tests use `app.inject`.
 * @throws Error when a route has no line in the policy table
 */
export function buildApp(services: Services, options: AppOptions = {}): FastifyInstance {
  const { timeouts = TIMEOUTS } = options;
  const app = fastify({
    loggerInstance: withoutChildren(services.logger),
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: services.trustedProxies.length > 0 ? [...services.trustedProxies] : false,
    bodyLimit: DEFAULT_BODY_LIMIT,
    requestTimeout: timeouts.requestMs,
    // No id has a NUL, and PostgreSQL's text accepts none: with U+FFFD in its place it is as unknown as any other.
    rewriteUrl: ({ url = "/" }) => (url.includes("%00") ? url.replaceAll("%00", "%EF%BF%BD") : url),
    http: {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: timeouts.checkMs,
      // Node would refuse a request without it, and without the envelope.
      requireHostHeader: false,
      shouldUpgradeCallback: upgradesOf(routes.filter(({ upgrades }) => upgrades).map(({ path }) => path)),
    },
    return503OnClosing: false,
    routerOptions: { maxParamLength: 200 },
    frameworkErrors: (error, request, reply) => renderFailure(toFailure(error, request), request, reply),
    clientErrorHandler: (error, socket) => {
      if (error.code === "ECONNRESET" || !socket.writable) {
        return;
      }
      // Behind an answer that is not read it would wait without end: each byte that comes in sets the time for unread answers back.
      if (socket.writableLength > 0) {
        socket.destroy();
      } else {
        socket.end(rawRefusal(error.code));
      }
    },
  }) as unknown as FastifyInstance;

  app.decorateRequest("principal", undefined);
  app.decorateRequest("hookOrganizationId", undefined);
  app.decorateRequest("project", undefined);
  app.decorateRequest("writtenProjectId", undefined);
  app.decorateRequest("auditId", undefined);
  app.decorateRequest("failureCode", undefined);
  app.decorateRequest("operation", undefined);
  app.decorateRequest("countedAs", undefined);
  app.decorateRequest("bodyReservation", undefined);
  app.addHook("onRoute", (route) => {
    // A route that is not added by registerRoute has no policy.
    if (route.config?.operationId === undefined) {
      throw new Error(`route ${String(route.method)} ${route.url} has no policy`);
    }
  });
  // Before everything that may refuse a request.
  if (services.tracing) {
    installTracing(app, services.tracing);
  }
  installClientLimits(app, options.clients ?? CLIENT_LIMITS, services.trustedProxies, options.shedder);
  app.addHook("onRequest", (request, _reply, done) => {
    const { raw } = request;
    const lacksHost = raw.headers.host === undefined && raw.httpVersion === "1.1";
    if (lacksHost) {
      return done(failures.malformedRequest("HTTP/1.1 needs a Host header"));
    }
    // Before the body, which is not read for this.
    done(request.is404 ? failures.routeNotFound() : undefined);
  });
  app.addHook("onSend", (_request, reply, payload, done) => {
    // It counts from the last byte that the client has read. Node checks twice before it times out: up to twice as long.
    reply.raw.setTimeout(timeouts.stalledResponseMs, disconnect);
    done(null, payload);
  });
  // An unknown expectation may be ignored; Node would refuse it without the envelope.
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
  installUpgrades(app);
  installJsonBody(app);
  installErrorHandling(app);
  installRequestLog(app, services);
  const bodies = bodyBudgets();
  const offered = routes.filter(({ isOffered }) => isOffered?.(services) ?? true);
  for (const route of offered) {
    if (!route.rawBody) {
      registerRoute(app, route, services, bodies);
    }
  }
  void app.register((raw, _options, done) => {
    installRawBody(raw);
    for (const route of offered) {
      if (route.rawBody) {
        registerRoute(raw, route, services, bodies);
      }
    }
    done();
  });
  installOtherMethods(app, offered);
  return app;
}

/** Ends a connection whose client does not read. One function for all answers: none is made for each. */
function disconnect(this: unknown): void {
  (this as ServerResponse).destroy();
}

/**
 * The logger as its own child: the request id is given to the few lines that are written, not bound to a logger per request. As Fastify's
 * factory of children, it would be checked for being a logger at each request.
 */
function withoutChildren(logger: Logger): Logger {
  const own = Object.create(logger) as Logger;
  return Object.assign(own, { child: () => own });
}

/** The answer to bytes that are no HTTP request, before there is a request to answer. */
function rawRefusal(code: string | undefined): string {
  const [line, failure] =
    code === "HPE_HEADER_OVERFLOW"
      ? ["431 Request Header Fields Too Large", failures.headersTooLarge()]
      : code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? ["408 Request Timeout", failures.requestTimeout()]
        : ["400 Bad Request", failures.malformedRequest("this is no HTTP request")];
  const body = JSON.stringify(failure.toBody());
  return [
    `HTTP/1.1 ${line}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
    "",
    body,
  ].join("\r\n");
}
