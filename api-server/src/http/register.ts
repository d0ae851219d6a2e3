import { METHODS } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { Operation } from "../fastify.ts";
import { policyOf } from "../policy/table.ts";
import type { Services } from "../services.ts";
import { beginCallAudit, withAuditOutcome } from "./audit.ts";
import { type BodyBudgets, DEFAULT_BODY_LIMIT, reserveBody, withReservation } from "./body-budget.ts";
import type { Answer, WebSocketAnswer } from "./exchange.ts";
import { guard, recheckCaller, requireCreation } from "./guard.ts";
import type { AnyRoute, Call } from "./route.ts";
import { RouteConcurrency } from "./route-concurrency.ts";
import { CLIENT_GONE, observeUpgrade } from "./telemetry.ts";
import { acceptWebSocket } from "./upgrades.ts";
import { refuseQuery, validate } from "./validate.ts";

/** Registers operations with Fastify: authorization and limits, validation, audit, handler, answer; and the methods that a path lacks. */

/** The body of an operation that has none: nothing, or an object without members. */
const noBody = z.strictObject({}).nullish();
const JSON_TYPE = "application/json; charset=utf-8";

/**
 * Puts one operation into the application.
 * @throws Error for a route without a line in the policy table, or of a project that its line does not find
 */
export function registerRoute(
  app: FastifyInstance,
  route: AnyRoute,
  services: Services,
  bodies: BodyBudgets,
): void {
  const policy = policyOf(route.operationId);
  if (!policy) {
    throw new Error(`route ${route.method} ${route.path} has no policy: ${route.operationId}`);
  }
  const { access } = policy;
  if (route.isOfProject && !(access.kind === "project" && access.missing === "refuse")) {
    throw new Error(`route ${route.method} ${route.path} is of a project, and its policy does not find one`);
  }
  const operation: Operation = {
    operationId: route.operationId,
    observation: services.metrics.operation(route.operationId),
    audited: policy.audited,
  };

  const audited = (call: Call<unknown, unknown, unknown>): Promise<Answer> =>
    withAuditOutcome(call.request, services, async () => {
      if (!route.beginsAudit) {
        await beginCallAudit(call.request, services);
      }
      return route.handler(call, services);
    });

  const bodySchema = route.body ?? (route.documentedBody || route.rawBody ? z.unknown() : noBody);
  const { maxConcurrent, bodyLimit } = route;
  const concurrency = maxConcurrent === undefined ? undefined : new RouteConcurrency(maxConcurrent);
  const guards = [guard(operation, policy, services)];
  if (route.method !== "GET") {
    guards.push(reserveBody(bodies, bodyLimit ?? DEFAULT_BODY_LIMIT, route.bodies));
  }

  const answerTo = (request: FastifyRequest, reply: FastifyReply): Answer | Promise<Answer> => {
    const body = route.prepareBody ? route.prepareBody(request.body, services) : request.body;
    if (access.kind === "create" && request.principal) {
      requireCreation(request.principal, access, projectTypeOf(body));
    }
    const call: Call<unknown, unknown, unknown> = {
      principal: request.principal,
      project: request.project,
      params: route.params ? validate(route.params, request.params, "path") : request.params,
      query: route.query ? validate(route.query, request.query, "query") : refuseQuery(request.query),
      // A GET's is not even read.
      body: route.method === "GET" ? undefined : validate(bodySchema, body, "body"),
      request,
      recheck: () => recheckCaller(request, policy, services),
    };
    const work = () => (policy.audited ? audited(call) : route.handler(call, services));
    return concurrency ? concurrency.run(request, reply, work) : work();
  };

  app.route({
    method: route.method,
    url: route.path,
    config: { operationId: route.operationId },
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
    onRequest: guards,
    handler: (request, reply) => {
      const reservation = request.bodyReservation;
      const answer = reservation
        ? withReservation(reservation, () => answerTo(request, reply))
        : answerTo(request, reply);
      if (answer instanceof Promise) {
        return answer.then((resolved) => send(reply, resolved, services));
      }
      return send(reply, answer, services);
    },
  });
}

function send(reply: FastifyReply, answer: Answer, services: Services): FastifyReply {
  if ("accept" in answer) {
    return upgrade(reply, answer, services);
  }
  reply.code(answer.status).header("content-type", JSON_TYPE);
  if (answer.headers) {
    reply.headers(answer.headers);
  }
  if ("stream" in answer) {
    return reply.send(answer.stream);
  }
  if ("content" in answer) {
    return reply.send(answer.content);
  }
  return reply.send("json" in answer ? answer.json : JSON.stringify(answer.body));
}

/** From here on no hook of the request runs: what they record of others is recorded here. */
function upgrade(
  reply: FastifyReply,
  { status, accept, abandon }: WebSocketAnswer,
  services: Services,
): FastifyReply {
  const { request } = reply;
  const socket = acceptWebSocket(request, reply);
  observeUpgrade(request, services, socket ? status : CLIENT_GONE, reply.elapsedTime / 1000);
  if (socket) {
    accept(socket);
  } else {
    abandon();
  }
  return reply;
}

function projectTypeOf(body: unknown): unknown {
  if (typeof body !== "object" || body === null) {
    return undefined;
  }
  const { config } = body as { config?: unknown };
  if (typeof config !== "object" || config === null) {
    return undefined;
  }
  return (config as { type_project?: unknown }).type_project;
}

/** Operation id of what answers a known path with a method that it does not have. */
export const OTHER_METHOD = "otherMethod";
/** A CONNECT never becomes a request in Node: its connection is closed. */
const NEVER_SEEN = new Set(["CONNECT"]);

/** The methods of each path, as an `Allow` header lists them: HEAD wherever there is GET, OPTIONS everywhere. */
export function allowedMethods(routes: readonly Pick<AnyRoute, "method" | "path">[]): Map<string, string[]> {
  const byPath = new Map<string, Set<string>>();
  for (const { method, path } of routes) {
    const methods = byPath.get(path) ?? new Set<string>(["OPTIONS"]);
    methods.add(method);
    if (method === "GET") {
      methods.add("HEAD");
    }
    byPath.set(path, methods);
  }
  return new Map([...byPath].map(([path, methods]) => [path, [...methods].sort()]));
}

/**
 * Answers every known path under every other method: 405 with `Allow`, and OPTIONS with 204 and `Allow`. They are routes,
 * not a handler of unknown ones, so that `DELETE /v1/project/plans` does not reach the project whose id is `plans`.
 * No credential is needed: the paths and their methods are public in the OpenAPI document.
 */
export function installOtherMethods(app: FastifyInstance, routes: readonly AnyRoute[]): void {
  const known = METHODS.filter((method) => !NEVER_SEEN.has(method));
  for (const method of known) {
    if (!app.supportedMethods.includes(method)) {
      app.addHttpMethod(method);
    }
  }
  for (const [path, allowed] of allowedMethods(routes)) {
    const allow = allowed.join(", ");
    app.route({
      method: known.filter((method) => !allowed.includes(method)),
      url: path,
      config: { operationId: OTHER_METHOD },
      // Before the body, which is not read for this.
      onRequest: (_request, _reply, done) => done(failures.methodNotAllowed(allow)),
      handler: () => undefined,
    });
    app.route({
      method: "OPTIONS",
      url: path,
      config: { operationId: OTHER_METHOD },
      onRequest: (_request, reply) => void reply.code(204).header("allow", allow).send(),
      handler: () => undefined,
    });
  }
}
