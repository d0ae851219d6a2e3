import { Failure } from "./failure.ts";

/** What the platform cannot do now, or does not offer: 503; and what was not foreseen: 500. Part of the catalog. */
export const unavailable = {
  serverBusy: () =>
    new Failure(503, "SERVER_BUSY", "too many requests of this kind are under way, try again", {
      headers: { "retry-after": "2" },
    }),
  projectTypeUnavailable: (type: string, version?: string, instances?: number) =>
    new Failure(
      503,
      "PROJECT_TYPE_UNAVAILABLE",
      `projects of type ${[type, version].filter(Boolean).join(" ")}${
        instances === undefined ? "" : ` with ${instances} instances`
      } cannot be created on this platform yet`,
    ),
  projectFeatureUnavailable: (feature: string) =>
    new Failure(503, "PROJECT_FEATURE_UNAVAILABLE", `${feature} is not available on this platform yet`),
  organizationRuntimeUnavailable: () =>
    new Failure(
      503,
      "ORGANIZATION_RUNTIME_UNAVAILABLE",
      "the organization's runtime is not ready, try again",
      {
        headers: { "retry-after": "5" },
      },
    ),
  planCapacityTemporarilyUnavailable: (cause?: unknown) =>
    new Failure(
      503,
      "PLAN_CAPACITY_TEMPORARILY_UNAVAILABLE",
      "the plan's capacity cannot be determined now, try again",
      {
        headers: { "retry-after": "5" },
        cause,
      },
    ),
  domainReleasePending: () =>
    new Failure(
      503,
      "DOMAIN_RELEASE_PENDING",
      "the change is under way, but a domain is not released yet, try again",
      {
        headers: { "retry-after": "5" },
      },
    ),
  projectDeletionPending: () =>
    new Failure(
      503,
      "PROJECT_DELETION_PENDING",
      "the project is being deleted, but not gone yet, try again",
      {
        headers: { "retry-after": "5" },
      },
    ),
  undeletePending: () =>
    new Failure(503, "UNDELETE_PENDING", "the project is being undeleted, but not back yet, try again", {
      headers: { "retry-after": "5" },
    }),
  creationInProgress: () =>
    new Failure(
      503,
      "CREATION_IN_PROGRESS",
      "a creation with this Idempotency-Key is being finished or taken back, try again",
      {
        headers: { "retry-after": "5" },
      },
    ),
  databaseCredentialsPending: () =>
    new Failure(
      503,
      "DATABASE_CREDENTIALS_PENDING",
      "the database has not taken over its new password yet: try again to be given it",
      { headers: { "retry-after": "5" } },
    ),
  gitProviderUnavailable: (why: string, cause?: unknown) =>
    new Failure(503, "GIT_PROVIDER_UNAVAILABLE", why, { headers: { "retry-after": "10" }, cause }),
  operatorUnavailable: () =>
    new Failure(503, "OPERATOR_UNAVAILABLE", "the platform's operator does not answer, try again", {
      headers: { "retry-after": "5" },
    }),
  addressNotAssigned: (cause?: unknown) =>
    new Failure(503, "ADDRESS_NOT_ASSIGNED", "the address could not be assigned, try again", {
      headers: { "retry-after": "5" },
      cause,
    }),
  clusterUnavailable: (cause?: unknown) =>
    new Failure(503, "CLUSTER_UNAVAILABLE", "the cluster does not answer, try again", {
      headers: { "retry-after": "5" },
      cause,
    }),
  logsUnavailable: () =>
    new Failure(503, "LOGS_UNAVAILABLE", "no node of the project's instances answers, try again", {
      headers: { "retry-after": "5" },
    }),
  execUnavailable: (cause?: unknown) =>
    new Failure(503, "EXEC_UNAVAILABLE", "the instance's node does not start the command, try again", {
      headers: { "retry-after": "5" },
      cause,
    }),
  issuerUnavailable: () =>
    new Failure(503, "ISSUER_UNAVAILABLE", "the token's issuer does not answer, try again", {
      headers: { "retry-after": "5" },
    }),
  ledgerUnavailable: (cause?: unknown) =>
    new Failure(503, "LEDGER_UNAVAILABLE", "the ledger does not answer, try again", {
      headers: { "retry-after": "5" },
      cause,
    }),
  analyticsNotConfigured: (what = "network analytics") =>
    new Failure(503, "ANALYTICS_NOT_CONFIGURED", `this platform keeps no ${what}`),
  analyticsUnavailable: (cause?: unknown) =>
    new Failure(503, "ANALYTICS_UNAVAILABLE", "the store of network analytics does not answer, try again", {
      headers: { "retry-after": "5" },
      cause,
    }),
  analyticsBusy: (cause?: unknown) =>
    new Failure(
      503,
      "ANALYTICS_BUSY",
      "this takes the store of network analytics too long now: try again, or a shorter window",
      { headers: { "retry-after": "5" }, cause },
    ),
  catalogUnavailable: () =>
    new Failure(503, "CATALOG_UNAVAILABLE", "the catalog is not available, try again", {
      headers: { "retry-after": "5" },
    }),
  backupsUnavailable: () => new Failure(503, "BACKUPS_UNAVAILABLE", "this platform makes no backups"),
  registryUnavailable: () =>
    new Failure(503, "REGISTRY_UNAVAILABLE", "this platform has no registry of builds"),
  scheduledJobsUnavailable: () =>
    new Failure(503, "SCHEDULED_JOBS_UNAVAILABLE", "scheduled jobs are not available on this platform"),
  internal: (cause?: unknown) => new Failure(500, "INTERNAL_ERROR", "internal error", { cause }),
} as const;
