import { toOpenApi } from "@slipway/crds";
import type { AnyRoute } from "../http/route.ts";
import { type Access, type Policy, policyOf } from "../policy/table.ts";
import { examples } from "./examples.ts";
import { parametersOf } from "./parameters.ts";
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
      : { requestBody: { required: true, content: { [JSON_TYPE]: content(route) } } }),
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
