import {
  BACKUP_ID,
  BUILD_ID,
  EMAIL_RECIPIENT_ID,
  GIT_CONNECTION_ID,
  LOG_DRAIN_ID,
  ORGANIZATION_ID,
  PROJECT_ID,
  toOpenApi,
  VARIABLE_GROUP_ID,
  WEBHOOK_ID,
} from "@slipway/crds";
import { INSTANCE } from "../exec/instance.ts";
import type { AnyRoute } from "../http/route.ts";
import { INVOICE_ID } from "../invoices/view.ts";
import { RUN_ID } from "../jobs/store.ts";
import { type Access, type Policy, policyOf } from "../policy/table.ts";
import {
  EXAMPLE_BACKUP_ID,
  EXAMPLE_BUILD_ID,
  EXAMPLE_CONNECTION_ID,
  EXAMPLE_DELIVERY_ID,
  EXAMPLE_DRAIN_ID,
  EXAMPLE_GROUP_ID,
  EXAMPLE_ID,
  EXAMPLE_INSTANCE,
  EXAMPLE_INVOICE_ID,
  EXAMPLE_RECIPIENT_ID,
  EXAMPLE_REPOSITORY_ID,
  EXAMPLE_RUN_ID,
  EXAMPLE_WEBHOOK_ID,
  examples,
} from "./examples.ts";
import { JSON_TYPE, type Json, responsesOf } from "./responses.ts";

/** One operation: who may call it, how often, with what, and what comes back. */
export function operationOf(route: AnyRoute): Json {
  const policy = policyOf(route.operationId) as Policy;
  const parameters = parametersOf(route, policy);
  const body = route.body ?? route.documentedBody;
  return {
    operationId: route.operationId,
    summary: route.summary,
    description: [route.description, accessText(policy.access), limitText(policy)]
      .filter(Boolean)
      .join("\n\n"),
    tags: route.tags,
    security: securityOf(policy.access),
    "x-slipway-scope": scopeText(policy.access),
    "x-slipway-rate-limit": policy.rateLimit,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !body.safeParse(undefined).success,
            content: { [JSON_TYPE]: content(route) },
          },
        }),
    responses: responsesOf(route, policy),
  };
}

function content(route: AnyRoute): Json {
  const schema = toOpenApi((route.body ?? route.documentedBody) as NonNullable<AnyRoute["body"]>, "input");
  const requests = examples[route.operationId]?.requests;
  return { schema, ...(requests === undefined ? {} : { examples: requests }) };
}

/** By which credentials: an owner is a user, which no key is. */
function securityOf({ kind }: Access): Json[] {
  if (kind === "public" || kind === "signature" || kind === "connection") {
    return [];
  }
  return kind === "owner" ? [{ bearer: [] }] : [{ apiKey: [] }, { bearer: [] }];
}

/** Who may call it, in the words of the specification. */
function scopeText(access: Access): string {
  switch (access.kind) {
    case "public":
      return "none";
    case "signature":
    case "connection":
      return "signature of the delivery";
    case "credential":
      return "any credential of the organization";
    case "owner":
      return "session of an owner";
    case "organization":
      return `${access.permission} on organization:*`;
    case "everyProject":
      return `${access.permission} on project:*`;
    case "create":
      return `${[...new Set(Object.values(access.byType))].join(" or ")} on organization:*`;
    case "project":
      return `${access.permission} on project:<project-id>`;
  }
}

const accessText = (access: Access): string =>
  access.kind === "public" ? "Needs no credential." : `Needs: \`${scopeText(access)}\`.`;

const COUNTED_PER = {
  credential: "credential",
  ip: "source address",
  organization: "source address and organization",
} as const;

function limitText({ rateLimit: { limit, windowSeconds, per } }: Policy): string {
  const window = windowSeconds === 60 ? "minute" : `${windowSeconds / 60} minutes`;
  return `At most ${limit} calls per ${window}, counted per ${COUNTED_PER[per]}.`;
}

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
  instance: {
    description: "Name of one of the project's instances, as its logs name it.",
    schema: { type: "string", maxLength: 63, pattern: INSTANCE.source },
    example: EXAMPLE_INSTANCE,
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
  groupId: {
    description: "Id of a variable group.",
    schema: { type: "string", maxLength: 40, pattern: VARIABLE_GROUP_ID.source },
    example: EXAMPLE_GROUP_ID,
  },
  webhookId: {
    description: "Id of a webhook.",
    schema: { type: "string", maxLength: 20, pattern: WEBHOOK_ID.source },
    example: EXAMPLE_WEBHOOK_ID,
  },
  recipientId: {
    description: "Id of a recipient of e-mail.",
    schema: { type: "string", maxLength: 20, pattern: EMAIL_RECIPIENT_ID.source },
    example: EXAMPLE_RECIPIENT_ID,
  },
  deliveryId: {
    description: "Id of an event that is delivered.",
    schema: { type: "string", maxLength: 64, pattern: "^evt_[0-9a-f]{32}$" },
    example: EXAMPLE_DELIVERY_ID,
  },
  drainId: {
    description: "Id of a log drain.",
    schema: { type: "string", maxLength: 40, pattern: LOG_DRAIN_ID.source },
    example: EXAMPLE_DRAIN_ID,
  },
  invoiceId: {
    description: "Number of an invoice.",
    schema: { type: "string", maxLength: 14, pattern: INVOICE_ID.source },
    example: EXAMPLE_INVOICE_ID,
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

/** Most query parameters have a default or may be left out. */
function queryParameters(route: AnyRoute): Json[] {
  if (!route.query) {
    return [];
  }
  const { required = [] } = toOpenApi(route.query, "input");
  return objectParameters(toOpenApi(route.query, "output"), "query", required as string[]);
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
