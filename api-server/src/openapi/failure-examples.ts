import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";
import { EXAMPLE_BUILD_ID, EXAMPLE_CONNECTION_ID, EXAMPLE_ID } from "./examples.ts";

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
  networkAccessNotAvailable: ["basic"],
  customSubdomainNotAvailable: ["free"],
  metricsNotAvailable: ["db-basic"],
  networkAnalyticsNotAvailable: ["free"],
  planLimitReached: ["FREE_PLAN_INSTANCE_LIMIT_REACHED", 2, "instances"],
  planLimitExceeded: ["FREE_PLAN_INSTANCE_LIMIT_EXCEEDED", 2, 1, "instances"],
  organizationLimitReached: ["projects", 500],
  insufficientPlanCapacity: ["business"],
  domainUnavailable: ["shop.apps.example.com"],
  projectTypeUnavailable: ["clickhouse"],
  projectFeatureUnavailable: ["building from a Git repository"],
  instanceNotFound: [`${EXAMPLE_ID}-6c9f7d5b8-x2x9k`],
  deploymentNotFound: ["d-3"],
  jobRunNotFound: [`${EXAMPLE_ID}-29928540`],
  buildNotFound: [EXAMPLE_BUILD_ID],
  gitVersionNotFound: ["v1.*"],
  githubRepositoryNotConnected: ["no GitHub account is connected with the organization"],
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
