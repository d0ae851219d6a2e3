import { z } from "zod";
import { type AnyRoute, defineRoute } from "../http/route.ts";
import { policyOf } from "../policy/table.ts";
import { operationOf } from "./operation.ts";
import { type Json, sharedComponents } from "./responses.ts";

/** Builds the OpenAPI document from the routes and the policy table, and serves it. */

const DESCRIPTION = `Projects on Kubernetes: create, list, read, change and delete them.

Every answer is JSON with a \`status\`: \`success\`, or \`failed\` with a \`message\` and a stable \`code\` (prefer it). Amounts
are BRL cents. A known path under another method answers 405 with \`Allow\`, an unknown path 404. Fields and parameters that
an operation does not have are refused.`;

/** The OpenAPI 3.1 document of the given routes: schemas, scopes and limits come from the routes and the policy table. Pure. */
export function openApiDocument(routes: readonly AnyRoute[], version: string): Json {
  const documented = routes.filter((route) => !route.undocumented);
  const paths: Record<string, Json> = {};
  for (const route of documented) {
    const path = route.path.replace(/:([A-Za-z]+)/g, "{$1}");
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operationOf(route);
  }
  linkCreation(paths, documented);
  return {
    openapi: "3.1.0",
    info: {
      title: "Slipway",
      version,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(documented.flatMap(({ tags }) => tags))].map((name) => ({ name })),
    paths,
    components: {
      ...sharedComponents(),
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

/** Links the id in the answer of a creation to every operation on one project. */
function linkCreation(paths: Record<string, Json>, routes: readonly AnyRoute[]): void {
  const create = routes.find(({ operationId }) => operationId === "createProject");
  const post = paths[create?.path ?? ""]?.post as { responses: Record<string, Json> } | undefined;
  if (!post) {
    return;
  }
  const onProject = routes.filter(({ operationId }) => policyOf(operationId)?.access.kind === "project");
  const links = onProject.map(({ operationId }) => [
    operationId,
    { operationId, parameters: { id: "$response.body#/data/project_id" } },
  ]);
  Object.assign(post.responses[201] as Json, { links: Object.fromEntries(links) });
}

/** Version of the API, as the path prefix says it, and of the document. */
const VERSION = "1.0.0";

/** The route that shows the document of all routes, its own among them. */
export function readOpenApi(routes: () => readonly AnyRoute[]): AnyRoute {
  let json: string | undefined;
  return defineRoute({
    operationId: "readOpenApi",
    method: "GET",
    path: "/v1/openapi.json",
    summary: "Read this document",
    tags: ["API"],
    responses: { 200: { description: "The OpenAPI 3.1 document.", schema: z.looseObject({}) } },
    handler: () => {
      json ??= JSON.stringify(openApiDocument(routes(), VERSION));
      return { status: 200, json };
    },
  });
}
