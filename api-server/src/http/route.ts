import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import type { OperationId } from "../policy/table.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";
import type { OwnBodies } from "./body-budget.ts";
import type { Answer } from "./exchange.ts";

/** The arguments of a handler: the caller, the project, the validated input. */
export interface Call<Params, Query, Body> {
  /** Undefined for public operations only. */
  principal: Principal | undefined;
  /** The project of the path, for operations with project access. */
  project: ApiProject | undefined;
  params: Params;
  query: Query;
  body: Body;
  request: FastifyRequest;
  /** Rejects once the caller may no longer call the operation: for streams. */
  recheck: () => Promise<void>;
}

/**
 * One operation: its schemas, its documentation and its handler. Who may call it and how often is in the policy
 * table under the same operation id.
 */
export interface Route<Params = unknown, Query = unknown, Body = unknown> {
  operationId: OperationId;
  method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** With `:name` parameters. */
  path: `/${string}`;
  summary: string;
  description?: string;
  tags: readonly string[];
  params?: z.ZodType<Params>;
  query?: z.ZodType<Query>;
  /** Checked before the handler. A route whose body needs more than a schema has `documentedBody` instead. */
  body?: z.ZodType<Body>;
  /** Completes the body that was sent; the permission depends on its type. Refuses nothing. */
  prepareBody?: (body: unknown, services: Services) => unknown;
  /** The schema of a body that the handler checks itself; the OpenAPI document shows it. */
  documentedBody?: z.ZodType;
  /** The handler gets the body as bytes, whatever its type; only its size is checked. */
  rawBody?: true;
  /** Request headers beside those of authentication, for the OpenAPI document. */
  headers?: z.ZodObject;
  /**
   * Success answers by status; one without a body has no schema. `texts`: types of text that it may be in place of JSON. `link`: that they may have the
   * header `link`, and to what.
   */
  responses: Readonly<
    Record<number, { description: string; schema?: z.ZodType; texts?: readonly string[]; link?: string }>
  >;
  /** A GET that becomes a WebSocket: its handler answers with one. */
  upgrades?: true;
  /** Whether the platform has it; it does unless given. Otherwise there is no such route. */
  isOffered?: (services: Services) => boolean;
  /** Not in the OpenAPI document: what people's browsers read. */
  undocumented?: true;
  /** Statuses of refusals beside those that the policy implies. */
  refusals?: readonly number[];
  /** Bytes of the largest body. */
  bodyLimit?: number;
  /** The budget of memory that its bodies have to themselves; they share that of all others unless given. */
  bodies?: OwnBodies;
  /** Calls that run concurrently in one process, at most three quarters of them of one organization; others wait briefly, then get 503. */
  maxConcurrent?: number;
  /**
   * Set on an audited route whose handler itself calls `beginCallAudit` before its first write, because only then it
   * knows what the call is about. For every other one the audit row is written before the handler runs.
   */
  beginsAudit?: true;
  /** Its path names a project, which the guard has read before the handler runs. Set by `defineProjectRoute`. */
  isOfProject?: true;
  handler: (call: Call<Params, Query, Body>, services: Services) => Answer | Promise<Answer>;
}

/** A route of any input, as in the table of routes. */
// biome-ignore lint/suspicious/noExplicitAny: handlers take their input in contravariant position
export type AnyRoute = Route<any, any, any>;

/** Types a route's handler by its schemas. */
export function defineRoute<Params, Query, Body>(
  route: Route<Params, Query, Body>,
): Route<Params, Query, Body> {
  return route;
}

/** A call about a project. */
export interface ProjectCall<Params, Query, Body> extends Call<Params, Query, Body> {
  project: ApiProject;
}

/** The same for an operation with project access, whose handler receives the project. */
export function defineProjectRoute<Params, Query, Body>({
  handler,
  ...route
}: Omit<Route<Params, Query, Body>, "handler"> & {
  handler: (call: ProjectCall<Params, Query, Body>, services: Services) => Answer | Promise<Answer>;
}): Route<Params, Query, Body> {
  return {
    ...route,
    isOfProject: true,
    handler: (call, services) => {
      if (!hasProject(call)) {
        throw new Error(`${route.operationId} was called without its project`);
      }
      return handler(call, services);
    },
  };
}

const hasProject = <Params, Query, Body>(
  call: Call<Params, Query, Body>,
): call is ProjectCall<Params, Query, Body> => call.project !== undefined;
