import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";

/** Examples of the OpenAPI document: those of the features' `examples.yaml`, and one of each failure. */

/** Ids in the examples of path parameters and failures; those of bodies are in each feature's `examples.yaml`. */
export const EXAMPLE_ID = "p4k8z1m6x0c3v9b2n7q5";
/** Id of a run of it: that of 2026-11-21T03:00Z. */
export const EXAMPLE_RUN_ID = `${EXAMPLE_ID}-29920500`;
export const EXAMPLE_BACKUP_ID = `${EXAMPLE_ID}-b29928540`;
export const EXAMPLE_CONNECTION_ID = "g7f2k9d4s1x8w3q6z5t0";
export const EXAMPLE_GROUP_ID = "v3n8c1m6z0x4b9q2k7t5";
export const EXAMPLE_WEBHOOK_ID = "w3n8c1m6z0x4b9q2k7t5";
export const EXAMPLE_RECIPIENT_ID = "e3n8c1m6z0x4b9q2k7t5";
export const EXAMPLE_DELIVERY_ID = "evt_5f2a9c81d3e04b7796a1c2d3e4f50617";
export const EXAMPLE_DRAIN_ID = "l3n8c1m6z0x4b9q2k7t5";
export const EXAMPLE_INVOICE_ID = "2026-000042";
export const EXAMPLE_REPOSITORY_ID = "rMTc-0a1b2c3d4e5f";
export const EXAMPLE_INSTANCE = `${EXAMPLE_ID}-6d4cf56db6-x7k2p`;
export const EXAMPLE_BUILD_ID = "b5q2m8n1v7c4x0z9l3k6";

/** The feature folders that have an `examples.yaml`. */
const FEATURES = [
  "alerts",
  "analytics",
  "backups",
  "budgets",
  "builds",
  "catalog",
  "databases",
  "domains",
  "git",
  "invoices",
  "jobs",
  "log-drains",
  "logs",
  "metrics",
  "notifications",
  "openapi",
  "payments",
  "projects",
  "undelete",
  "usage",
  "variable-groups",
];

/** Examples of one operation. Tests check all of them against the schemas, and send the bodies of creations. */
const operationExamples = z.strictObject({
  /** Bodies to send, by name. */
  requests: z.record(z.string(), z.strictObject({ summary: z.string(), value: z.unknown() })).optional(),
  /** Of successful responses, by status. */
  responses: z.record(z.string().regex(/^2\d\d$/), z.unknown()),
});
const featureExamples = z.record(z.string(), operationExamples);

export type OperationExamples = z.infer<typeof operationExamples>;

/** By operation id. An operation without any fails a test. */
export const examples: Readonly<Record<string, OperationExamples>> = Object.fromEntries(
  FEATURES.flatMap((feature) => Object.entries(readExamples(feature))),
);

/** @throws Error that names the file, when it cannot be read or is not valid */
function readExamples(feature: string): Record<string, OperationExamples> {
  try {
    const text = readFileSync(new URL(`../${feature}/examples.yaml`, import.meta.url), "utf8");
    return featureExamples.parse(parse(text));
  } catch (error) {
    throw new Error(`no valid examples in ${feature}/examples.yaml`, { cause: error });
  }
}

type Factories = Readonly<Record<string, (...values: never[]) => Failure>>;

/** Arguments of the failures that have any, for their examples. */
const ARGUMENTS: Partial<Record<keyof typeof failures, readonly unknown[]>> = {
  rateLimitExceeded: [42],
  organizationPermission: [["project.create"]],
  projectPermission: ["project.read", EXAMPLE_ID],
  projectPermissions: [["project.plan.update", "project.envs.update"], EXAMPLE_ID],
  methodNotAllowed: ["GET, HEAD, OPTIONS"],
  validation: [
    [
      { field: "name", message: "must be 6 to 32 characters" },
      { field: "config.port", message: "Invalid input: expected number, received string" },
    ],
  ],
  templateNotFound: ["static-site", 9],
  malformedBody: ["the body is not valid UTF-8"],
  malformedRequest: ["Content-Length does not match the body"],
  bodyTooLarge: [1_048_576],
  healthcheckNotAvailable: ["free"],
  autoscalingNotAvailable: ["basic"],
  sleepNotAvailable: ["business"],
  networkAccessNotAvailable: ["basic"],
  customSubdomainNotAvailable: ["free"],
  metricsNotAvailable: ["db-basic"],
  networkAnalyticsNotAvailable: ["free"],
  planLimitReached: ["FREE_PLAN_INSTANCE_LIMIT_REACHED", 2, "instances"],
  planLimitExceeded: ["FREE_PLAN_INSTANCE_LIMIT_EXCEEDED", 2, 1, "instances"],
  organizationLimitReached: ["projects", 500],
  runLimitReached: ["project", 5],
  insufficientPlanCapacity: ["business"],
  domainUnavailable: ["shop.apps.example.com"],
  projectTypeUnavailable: ["clickhouse"],
  projectFeatureUnavailable: ["building from a Git repository"],
  instanceNotRunning: [EXAMPLE_INSTANCE],
  execSessionLimitReached: ["project", 8],
  instanceNotFound: [`${EXAMPLE_ID}-6c9f7d5b8-x2x9k`],
  deploymentNotFound: ["d-3"],
  jobRunNotFound: [`${EXAMPLE_ID}-29928540`],
  buildNotFound: [EXAMPLE_BUILD_ID],
  gitVersionNotFound: ["v1.*"],
  githubRepositoryNotConnected: ["no GitHub account is connected with the organization"],
  variableGroupNotFound: [EXAMPLE_GROUP_ID],
  variableGroupInUse: [EXAMPLE_GROUP_ID, [EXAMPLE_ID]],
  variableGroupExternal: ["mail-vault"],
  variableGroupIncomplete: ["mail-vault"],
  webhookNotFound: [EXAMPLE_WEBHOOK_ID],
  webhookDeliveryNotFound: [EXAMPLE_DELIVERY_ID],
  webhookLimitReached: [20],
  emailRecipientNotFound: [EXAMPLE_RECIPIENT_ID],
  emailDeliveryNotFound: [EXAMPLE_DELIVERY_ID],
  emailRecipientLimitReached: [20],
  logDrainNotFound: [EXAMPLE_DRAIN_ID],
  invoiceNotFound: [EXAMPLE_INVOICE_ID],
  logDrainExternal: ["drain-token"],
  gitConnectionNotFound: [EXAMPLE_CONNECTION_ID],
  gitConnectionUnavailable: ["the Git server does not take the credential"],
  gitConnectionOperationPending: ["a build uses it"],
  gitCapabilityUnavailable: ["the credential may not list repositories"],
  gitProviderUnavailable: ["the Git server does not answer in time"],
  backupNotFound: [`${EXAMPLE_ID}-b29928540`],
  backupNotComplete: [`${EXAMPLE_ID}-b29928540`],
  jobRunsPending: [true],
  projectTypeMismatch: ["http", ["job"]],
  deploymentNotAvailable: ["d-3"],
  environmentTooLarge: [1_048_576],
  environmentIncomplete: [`${EXAMPLE_ID}-settings`],
};

export interface FailureExample {
  code: string;
  body: Record<string, unknown>;
}

/** A body of every failure code, by status, as the API answers it. */
export function failureExamples(): ReadonlyMap<number, FailureExample[]> {
  const byStatus = new Map<number, FailureExample[]>();
  const factories = failures as unknown as Factories;
  for (const [name, make] of Object.entries(factories)) {
    const values = ARGUMENTS[name as keyof typeof failures] ?? [];
    const failure = make(...(values as never[]));
    const examples = byStatus.get(failure.status) ?? [];
    if (examples.some(({ code }) => code === failure.code)) {
      continue;
    }
    byStatus.set(failure.status, [...examples, { code: failure.code, body: failure.toBody() }]);
  }
  return byStatus;
}
