import type { FastifyReply, FastifyRequest } from "fastify";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import type { Operation } from "../fastify.ts";
import type { Permission } from "../policy/permissions.ts";
import type { Access, Policy, RateLimit } from "../policy/table.ts";
import { rateLimitHeader, rateLimitPolicyHeader, scaledLimit } from "../rate-limit/limiter.ts";
import type { Services } from "../services.ts";
import { addressGroup, type Hook } from "./exchange.ts";
import { seeNewestWrite } from "./newest-writes.ts";

/**
 * What is checked before every handler, in this order: credential (401), rate (429), permission (403),
 * existence (404). It runs before the body is read, so that a caller without a credential cannot send one.
 * A caller who reads projects observes the last write in the organization, through any replica.
 * No promise is created where the answers are in memory: this is the path of every read.
 */
export function guard(
  operation: Operation,
  policy: Policy,
  services: Pick<
    Services,
    "authenticator" | "connections" | "jobRuns" | "metrics" | "projects" | "rateLimitScale" | "rateLimiter"
  >,
): Hook {
  const { access } = policy;
  const { windowSeconds, per } = policy.rateLimit;
  const limit = scaledLimit(policy.rateLimit, services.rateLimitScale);
  const policyHeader = rateLimitPolicyHeader(limit, windowSeconds);

  const readsRuns = access.kind === "project" && access.readsRuns === true;
  const needsCredential = !["public", "signature", "connection"].includes(access.kind);
  const readsProjects = needsCredential && access.kind !== "create";

  const countCall = (request: FastifyRequest, reply: FastifyReply): void | Promise<void> => {
    const who = counted(per, request);
    const organizationId = readsProjects ? request.principal?.organizationId : undefined;
    const bucket = `${operation.operationId} ${who}`;
    request.countedAs = bucket;
    const decision = services.rateLimiter.take(bucket, limit, windowSeconds, organizationId);
    const apply = (known: Awaited<typeof decision>): void | Promise<void> => {
      reply.header("ratelimit-policy", policyHeader).header("ratelimit", rateLimitHeader(known));
      if (!known.allowed) {
        throw failures.rateLimitExceeded(known.resetSeconds);
      }
      const seen = seeNewestWrite(known.newestWrite, services.projects, services);
      const runs = readsRuns ? seeNewestWrite(known.newestRun, services.jobRuns, services) : undefined;
      return seen instanceof Promise && runs instanceof Promise ? seen.then(() => runs) : (seen ?? runs);
    };
    return decision instanceof Promise ? decision.then(apply) : apply(decision);
  };

  const admit = (request: FastifyRequest): void | Promise<void> => {
    const { principal, hookOrganizationId } = request;
    // As for a wrong signature: the answer does not show which connections exist.
    if (access.kind === "connection" && hookOrganizationId === undefined) {
      throw failures.gitDeliveryUnsigned();
    }
    if (principal === undefined) {
      return;
    }
    requirePermission(principal, access, request);
    if (access.kind === "project") {
      return findProject(request, principal, access, services);
    }
  };

  const proceed = (request: FastifyRequest, reply: FastifyReply): void | Promise<void> => {
    const counted = countCall(request, reply);
    return counted instanceof Promise ? counted.then(() => admit(request)) : admit(request);
  };

  const run = (request: FastifyRequest, reply: FastifyReply): void | Promise<void> => {
    if (access.kind === "connection") {
      const { connectionId } = request.params as { connectionId: string };
      request.hookOrganizationId = services.connections.organizationOf(connectionId);
    }
    if (!needsCredential) {
      return proceed(request, reply);
    }
    const principal = services.authenticator.authenticate(request.headers, addressOf(request));
    if (!(principal instanceof Promise)) {
      request.principal = principal;
      return proceed(request, reply);
    }
    return principal.then((found) => {
      request.principal = found;
      return proceed(request, reply);
    });
  };

  return (request, reply, done) => {
    request.operation = operation;
    let pending: void | Promise<void>;
    try {
      pending = run(request, reply);
    } catch (error) {
      done(error as Error);
      return;
    }
    if (pending === undefined) {
      done();
    } else {
      pending.then(() => done(), done);
    }
  };
}

/** The key that a call is counted under. */
function counted(per: RateLimit["per"], { principal, hookOrganizationId, ip }: FastifyRequest): string {
  if (per === "credential" && principal?.credentialId !== undefined) {
    return principal.credentialId;
  }
  const address = addressGroup(ip);
  return hookOrganizationId === undefined ? address : `${hookOrganizationId} ${address}`;
}

/**
 * Checks again, for a long stream, whether the caller may still call the operation.
 * @throws Failure 401 or 403 when it may not, at most a few seconds after the ledger changed
 */
export async function recheckCaller(
  request: FastifyRequest,
  { access }: Policy,
  { authenticator }: Pick<Services, "authenticator">,
): Promise<void> {
  const principal = await authenticator.authenticate(request.headers, addressOf(request));
  requirePermission(principal, access, request);
}

/** @throws Failure 403 */
function requirePermission(principal: Principal, access: Access, request: FastifyRequest): void {
  if (access.kind === "owner") {
    requireOwner(principal);
  } else if (access.kind === "organization") {
    requireOrganization(principal, access.permission);
  } else if (access.kind === "everyProject") {
    requireEveryProject(principal, access.permission);
  } else if (access.kind === "create") {
    requireAnyCreation(principal, access.byType);
  } else if (access.kind === "project") {
    requireProject(principal, access.permission, projectIdOf(request));
  }
}

/** Computed only when it is needed. */
const addressOf = (request: FastifyRequest) => () => addressGroup(request.ip);

const projectIdOf = (request: FastifyRequest): string => (request.params as { id: string }).id;

function requireProject(principal: Principal, permission: Permission, id: string): void {
  if (!principal.grants.onProject(permission, id)) {
    throw failures.projectPermission(permission, id);
  }
}

function requireOwner(principal: Principal): void {
  if (principal.kind !== "user" || principal.role !== "owner") {
    throw failures.ownerRequired();
  }
}

function requireOrganization(principal: Principal, permission: Permission): void {
  if (!principal.grants.onOrganization(permission)) {
    throw failures.organizationPermission([permission]);
  }
}

function requireEveryProject(principal: Principal, permission: Permission): void {
  if (!principal.grants.onEveryProject(permission)) {
    throw failures.projectPermission(permission, "*");
  }
}

/** The type is in the body, not yet read: only callers that may create nothing at all are refused here. */
function requireAnyCreation(principal: Principal, byType: Readonly<Record<string, Permission>>): void {
  const permissions = [...new Set(Object.values(byType))];
  if (!permissions.some((permission) => principal.grants.onOrganization(permission))) {
    throw failures.organizationPermission(permissions);
  }
}

/** Once the body is read: the permission that its type needs. An unknown type is left to validation. */
export function requireCreation(
  principal: Principal,
  access: Extract<Access, { kind: "create" }>,
  type: unknown,
): void {
  const permission =
    typeof type === "string" && Object.hasOwn(access.byType, type) ? access.byType[type] : undefined;
  if (permission !== undefined && !principal.grants.onOrganization(permission)) {
    throw failures.organizationPermission([permission]);
  }
}

function findProject(
  request: FastifyRequest,
  principal: Principal,
  access: Extract<Access, { kind: "project" }>,
  services: Pick<Services, "projects">,
): void | Promise<void> {
  const attach = (project: typeof request.project): void => {
    if (project === undefined && access.missing === "refuse") {
      throw failures.projectNotFound();
    }
    request.project = project;
  };
  const found = services.projects.find(principal.organizationId, projectIdOf(request));
  return found instanceof Promise ? found.then(attach) : attach(found);
}
