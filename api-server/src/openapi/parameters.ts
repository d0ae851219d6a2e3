import {
  BACKUP_ID,
  BUILD_ID,
  GIT_CONNECTION_ID,
  ORGANIZATION_ID,
  PROJECT_ID,
  toOpenApi,
} from "@slipway/crds";
import type { AnyRoute } from "../http/route.ts";
import { RUN_ID } from "../jobs/store.ts";
import type { Policy } from "../policy/table.ts";
import {
  EXAMPLE_BACKUP_ID,
  EXAMPLE_BUILD_ID,
  EXAMPLE_CONNECTION_ID,
  EXAMPLE_ID,
  EXAMPLE_REPOSITORY_ID,
  EXAMPLE_RUN_ID,
} from "./examples.ts";
import type { Json } from "./responses.ts";

/** Path, query and header parameters of an operation. */
export function parametersOf(route: AnyRoute, policy: Policy): Json[] {
  return [...pathParameters(route), ...queryParameters(route), ...headerParameters(route, policy)];
}

/** Schemas of a path's `:name`. */
const pathSchemas: Readonly<Record<string, Json>> = {
  id: {
    description: "Id of the project.",
    schema: { type: "string", maxLength: 40, pattern: PROJECT_ID.source },
    example: EXAMPLE_ID,
  },
  runId: {
    description: "Id of a run of the job.",
    schema: { type: "string", maxLength: 253, pattern: RUN_ID.source },
    example: EXAMPLE_RUN_ID,
  },
  backupId: {
    description: "Id of a backup.",
    schema: { type: "string", maxLength: 62, pattern: BACKUP_ID.source },
    example: EXAMPLE_BACKUP_ID,
  },
  buildId: {
    description: "Id of a build.",
    schema: { type: "string", maxLength: 253, pattern: BUILD_ID.source },
    example: EXAMPLE_BUILD_ID,
  },
  connectionId: {
    description: "Id of a Git connection.",
    schema: { type: "string", maxLength: 40, pattern: GIT_CONNECTION_ID.source },
    example: EXAMPLE_CONNECTION_ID,
  },
  repositoryId: {
    description: "Id of a repository, as the connection gave it out.",
    schema: { type: "string", maxLength: 1024 },
    example: EXAMPLE_REPOSITORY_ID,
  },
};

function pathParameters(route: AnyRoute): Json[] {
  return [...route.path.matchAll(/:([A-Za-z]+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    ...(pathSchemas[name] ?? { schema: { type: "string" } }),
  }));
}

/** Every query parameter has a default or may be left out. */
function queryParameters(route: AnyRoute): Json[] {
  return route.query ? objectParameters(toOpenApi(route.query, "output"), "query", []) : [];
}

function headerParameters(route: AnyRoute, { access }: Policy): Json[] {
  const headers = route.headers ? toOpenApi(route.headers, "input") : {};
  const own = objectParameters(headers, "header", (headers.required ?? []) as string[]);
  return ["public", "signature", "connection"].includes(access.kind) ? own : [organization, ...own];
}

const organization: Json = {
  name: "x-organization-id",
  in: "header",
  required: false,
  description: "The active organization: required with a user token, not needed with an API key.",
  schema: { type: "string", maxLength: 40, pattern: ORGANIZATION_ID.source },
};

function objectParameters(schema: Json, place: "query" | "header", required: readonly string[]): Json[] {
  const properties = (schema.properties ?? {}) as Record<string, Json>;
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: property,
  }));
}
