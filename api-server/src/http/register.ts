import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { ConcurrencyLimiter } from "../concurrency-limiter.ts";
import { failures } from "../errors/catalog.ts";
import type { Operation } from "../fastify.ts";
import { policyOf } from "../policy/table.ts";
import type { Services } from "../services.ts";
import { addressGroup } from "./address.ts";
import { beginCallAudit, withAuditOutcome } from "./audit.ts";
import { awaitRoom, type BodyBudgets, DEFAULT_BODY_LIMIT, withRoom } from "./body-budget.ts";
import { guard, recheckCaller, requireCreation } from "./guard.ts";
import { onceOver } from "./once-over.ts";
import type { Answer, AnyRoute, Call } from "./route.ts";
import { refuseQuery, validate } from "./validate.ts";

/** The body of an operation that has none: nothing, or an object without members. */
const noBody = z.strictObject({}).nullish();
/** Of the calls that a route with a limit works at, one organization has this part. */
const SHARE = 1 / 4;
/** Calls that wait for each that works: of all organizations, and of one. */
const WAITING_PER_CALL = 8;
const WAITING_OF_ONE_PER_CALL = 2;
/** Milliseconds that they wait: longer than the apiserver takes to answer again while a replica of ours starts beside it. */
const WAIT_MS = 5_000;
const JSON_TYPE = "application/json; charset=utf-8";

/**
 * Puts one operation into the application.
 * @throws Error for a route without a line in the policy table
 */
export function registerRoute(
  app: FastifyInstance,
  route: AnyRoute,
  services: Services,
  bodies: BodyBudgets,
): void {
  const policy = policyOf(route.operationId);
  if (!policy) throw new Error(`route ${route.method} ${route.path} has no policy: ${route.operationId}`);
  const { access } = policy;
  const operation: Operation = {
    operationId: route.operationId,
    observation: services.metrics.operation(route.operationId),
    audited: policy.audited,
  };

  const audited = (call: Call<unknown, unknown, unknown>): Promise<Answer> =>
    withAuditOutcome(call.request, services, async () => {
      if (!route.beginsAudit) await beginCallAudit(call.request, services);
      return route.handler(call, services);
    });

  const bodySchema = route.body ?? (route.documentedBody || route.rawBody ? z.unknown() : noBody);
  const { atOnce, bodyLimit } = route;
  const limiter = atOnce === undefined ? undefined : sharedLimiter(atOnce);
  const guards = [guard(operation, policy, services)];
  if (route.method !== "GET") guards.push(awaitRoom(bodies, bodyLimit ?? DEFAULT_BODY_LIMIT));

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
    return limiter ? untilTaken(limiter, request, reply, work) : work();
  };

  app.route({
    method: route.method,
    url: route.path,
    config: { operationId: route.operationId },
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
    onRequest: guards,
    handler: (request, reply) => {
      const room = request.bodyRoom;
      const answer = room ? withRoom(room, () => answerTo(request, reply)) : answerTo(request, reply);
      if (answer instanceof Promise) return answer.then((settled) => send(reply, settled));
      return send(reply, answer);
    },
  });
}

/** Bounds the calls of a route that are worked at. */
function sharedLimiter(atOnce: number): ConcurrencyLimiter {
  return new ConcurrencyLimiter({
    total: atOnce,
    perKey: Math.ceil(atOnce * SHARE),
    waiting: atOnce * WAITING_PER_CALL,
    waitingPerKey: atOnce * WAITING_OF_ONE_PER_CALL,
    waitMs: WAIT_MS,
    refuse: failures.serverBusy,
  });
}

/**
 * Works in turn, and keeps the place until the client has taken the answer: who asks for large ones and reads none has no more of
 * them in memory than places. Streams have bounds of their own.
 */
async function untilTaken(
  limiter: ConcurrencyLimiter,
  request: FastifyRequest,
  reply: FastifyReply,
  work: () => Answer | Promise<Answer>,
): Promise<Answer> {
  const release = await limiter.acquire(sharerOf(request));
  try {
    // Nobody would read the answer.
    if (request.raw.socket?.destroyed) throw failures.serverBusy();
    const answer = await work();
    if ("stream" in answer) release();
    else onceOver(request, reply, release);
    return answer;
  } catch (error) {
    release();
    throw error;
  }
}

/** Whose share a call takes: of the organization, or of the connection whose hook it is, or of the address. */
function sharerOf({ principal, params, ip }: FastifyRequest): string {
  const { connectionId } = (params ?? {}) as { connectionId?: string };
  return principal?.organizationId ?? connectionId ?? addressGroup(ip);
}

function send(reply: FastifyReply, answer: Answer): FastifyReply {
  reply.code(answer.status).header("content-type", JSON_TYPE);
  if (answer.headers) reply.headers(answer.headers);
  if ("stream" in answer) return reply.send(answer.stream);
  if ("content" in answer) return reply.send(answer.content);
  return reply.send("json" in answer ? answer.json : JSON.stringify(answer.body));
}

function projectTypeOf(body: unknown): unknown {
  if (typeof body !== "object" || body === null) return undefined;
  const { config } = body as { config?: unknown };
  if (typeof config !== "object" || config === null) return undefined;
  return (config as { type_project?: unknown }).type_project;
}
