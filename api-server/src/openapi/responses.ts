import { STATUS_CODES } from "node:http";
import { toOpenApi } from "@slipway/crds";
import type { AnyRoute } from "../http/route.ts";
import type { Policy } from "../policy/table.ts";
import { failureSchema } from "../projects/routes/schemas.ts";
import { examples, failureExamples } from "./examples.ts";

/** A part of the document. */
export type Json = Record<string, unknown>;

export const JSON_TYPE = "application/json";

const REASONS: Readonly<Record<number, string>> = {
  400: "The request breaks a rule; `errors` names every broken one.",
  401: "The credential is missing or not valid.",
  402: "The organization is blocked by a pending payment.",
  403: "The credential's grants, or the plan, do not allow it.",
  404: "There is no such resource in the organization; one of another organization looks the same.",
  409: "The state of the platform does not allow it.",
  413: "The body is too large.",
  415: "The body is not application/json in UTF-8.",
  426: "The operation is a WebSocket.",
  429: "The rate limit is exceeded.",
  431: "The address and the headers are too large.",
  503: "Not possible at this time; try again.",
};

const header = (description: string, schema: Json, required: boolean): Json => ({
  description,
  required,
  schema,
});

/** Headers, failures and the failure envelope that the operations refer to. */
export function sharedComponents(): Json {
  const byStatus = failureExamples();
  const responses = Object.entries(REASONS).map(([status, description]) => [
    responseName(Number(status)),
    {
      description,
      headers: failureHeaders(Number(status)),
      content: {
        [JSON_TYPE]: {
          schema: { $ref: "#/components/schemas/Failure" },
          examples: Object.fromEntries(
            (byStatus.get(Number(status)) ?? []).map(({ code, body }) => [code, { value: body }]),
          ),
        },
      },
    },
  ]);
  return {
    schemas: { Failure: toOpenApi(failureSchema, "output") },
    responses: Object.fromEntries(responses),
    headers: {
      RateLimit: header(
        "What is left of the limit: `r` calls in the next `t` seconds.",
        { type: "string", pattern: '^"default";r=[0-9]+;t=[0-9]+$' },
        true,
      ),
      RateLimitPolicy: header(
        "What is allowed: `q` calls in `w` seconds.",
        { type: "string", pattern: '^"default";q=[0-9]+;w=[0-9]+$' },
        true,
      ),
      RetryAfter: header("Seconds until it is worth trying again.", { type: "integer", minimum: 0 }, true),
    },
  };
}

/** `TooManyRequests`, for 429. */
const responseName = (status: number): string =>
  (STATUS_CODES[status] ?? String(status)).replace(/[^A-Za-z]/g, "");

const ref = (kind: "headers" | "responses", name: string): Json => ({ $ref: `#/components/${kind}/${name}` });
const limits = {
  ratelimit: ref("headers", "RateLimit"),
  "ratelimit-policy": ref("headers", "RateLimitPolicy"),
};

function failureHeaders(status: number): Json {
  // A credential that is none has no limit of its own: it is refused before anything is counted.
  if (status === 401) {
    return {};
  }
  if (status === 429) {
    return { ...limits, "retry-after": ref("headers", "RetryAfter") };
  }
  return {};
}

/** What an operation answers: its successes, and every refusal by its policy or its schemas. */
export function responsesOf(route: AnyRoute, policy: Policy): Json {
  const result: Json = {};
  for (const [status, { description, schema, texts = [], link }] of Object.entries(route.responses)) {
    const example = examples[route.operationId]?.responses[Number(status)];
    const body = schema && {
      content: {
        [JSON_TYPE]: { schema: toOpenApi(schema, "output"), ...(example === undefined ? {} : { example }) },
        ...Object.fromEntries(texts.map((type) => [type, { schema: { type: "string" } }])),
      },
    };
    const headers =
      link === undefined ? limits : { ...limits, link: header(link, { type: "string" }, false) };
    // The answer that makes a WebSocket has the headers of its handshake alone.
    result[status] = { description, ...(status === "101" ? {} : { headers }), ...body };
  }
  for (const status of refusals(route, policy)) {
    result[String(status)] = ref("responses", responseName(status));
  }
  return result;
}

function refusals(route: AnyRoute, { access }: Policy): number[] {
  // Parameters that an operation does not have are refused by all of them.
  const implied = new Set<number>([400, 429, ...(route.refusals ?? [])]);
  if (access.kind === "signature" || access.kind === "connection") {
    for (const status of [401, 503]) {
      implied.add(status);
    }
  } else if (access.kind !== "public") {
    for (const status of [401, 403, 503]) {
      implied.add(status);
    }
  }
  if (access.kind === "project") {
    implied.add(404);
  }
  if (route.method !== "GET") {
    for (const status of [413, 415]) {
      implied.add(status);
    }
  }
  return [...implied].sort((a, b) => a - b);
}
