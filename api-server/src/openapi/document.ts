import { toOpenApi } from "@slipway/crds";
import type { AnyRoute } from "../http/route.ts";
import { type Access, type Policy, policyOf } from "../policy/table.ts";
import { failureSchema } from "../routes/v1/project/schemas.ts";

type Json = Record<string, unknown>;

const REASONS: Readonly<Record<number, string>> = {
  400: "The request breaks a rule; `errors` names every broken one.",
  401: "The credential is missing or invalid.",
  402: "The organization is blocked by a pending payment.",
  403: "The credential's grants, or the plan, do not allow it.",
  404: "There is no such resource in the organization.",
  409: "The state of the platform does not allow it.",
  413: "The body is too large.",
  415: "The body is not application/json.",
  429: "The rate limit is exceeded.",
  503: "Not possible at this time.",
};

const JSON_TYPE = "application/json";

/** The OpenAPI 3.1 document of the given routes: schemas, scopes and limits come from where the code takes them. */
export function openApiDocument(routes: readonly AnyRoute[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.path.replace(/:([A-Za-z]+)/g, "{$1}");
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Slipway",
      version,
      description: "Projects on Kubernetes: create, list, read, change and delete them.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    paths,
    components: {
      schemas: { Failure: toOpenApi(failureSchema, "output") },
      securitySchemes: {
        apiKey: {
          type: "apiKey",
          in: "header",
          name: "x-api-key",
          description: "API key of an organization.",
        },
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "API key of an organization, or a user token together with x-organization-id.",
        },
      },
    },
  };
}

function operation(route: AnyRoute): Json {
  const policy = policyOf(route.operationId) as Policy;
  const parameters = [
    ...pathParameters(route),
    ...queryParameters(route),
    ...headerParameters(route, policy),
  ];
  const body = route.body ?? route.documentedBody;
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: route.tags,
    security: policy.access.kind === "public" ? [] : [{ apiKey: [] }, { bearer: [] }],
    "x-slipway-scope": scopeText(policy.access),
    "x-slipway-rate-limit": policy.rateLimit,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { [JSON_TYPE]: { schema: toOpenApi(body, "input") } } } }),
    responses: responses(route, policy),
  };
}

/** Who may call it, in the words of the specification. */
function scopeText(access: Access): string {
  switch (access.kind) {
    case "public":
      return "none";
    case "credential":
      return "any credential of the organization";
    case "owner":
      return "session of an owner";
    case "create":
      return `${[...new Set(Object.values(access.byType))].join(" or ")} on organization:*`;
    case "project":
      return `${access.permission} on project:<project-id>`;
  }
}

function responses(route: AnyRoute, policy: Policy): Json {
  const result: Json = {};
  for (const [status, { description, schema }] of Object.entries(route.responses)) {
    result[status] = { description, content: { [JSON_TYPE]: { schema: toOpenApi(schema, "output") } } };
  }
  for (const status of refusals(route, policy)) {
    result[String(status)] = {
      description: REASONS[status] ?? "Refused.",
      content: { [JSON_TYPE]: { schema: { $ref: "#/components/schemas/Failure" } } },
    };
  }
  return result;
}

function refusals(route: AnyRoute, { access }: Policy): number[] {
  const implied = new Set<number>([429, ...(route.refusals ?? [])]);
  if (access.kind !== "public") for (const status of [401, 403, 503]) implied.add(status);
  if (access.kind === "project") implied.add(404);
  if (route.body ?? route.documentedBody) for (const status of [400, 413, 415]) implied.add(status);
  return [...implied].sort((a, b) => a - b);
}

function pathParameters(route: AnyRoute): Json[] {
  return [...route.path.matchAll(/:([A-Za-z]+)/g)].map((match) => ({
    name: match[1],
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(route: AnyRoute): Json[] {
  if (!route.query) return [];
  return objectParameters(toOpenApi(route.query, "output"), "query", () => false);
}

function headerParameters(route: AnyRoute, { access }: Policy): Json[] {
  const own = route.headers
    ? objectParameters(toOpenApi(route.headers, "input"), "header", (name, required) =>
        required.includes(name),
      )
    : [];
  if (access.kind === "public") return own;
  const organization = {
    name: "x-organization-id",
    in: "header",
    required: false,
    description: "The active organization: required with a user token, not needed with an API key.",
    schema: { type: "string" },
  };
  return [organization, ...own];
}

function objectParameters(
  schema: Json,
  place: "query" | "header",
  isRequired: (name: string, required: readonly string[]) => boolean,
): Json[] {
  const properties = (schema.properties ?? {}) as Record<string, Json>;
  const required = (schema.required ?? []) as string[];
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: place,
    required: isRequired(name, required),
    ...(description === undefined ? {} : { description }),
    schema: property,
  }));
}
