import { Failure, type FieldError, shownErrors } from "./failure.ts";

/** What an organization has a limit of, and its words in a refusal. */
const ORGANIZATION_LIMITS = {
  projects: { code: "ORGANIZATION_PROJECT_LIMIT_REACHED", noun: "projects" },
  customDomains: { code: "ORGANIZATION_CUSTOM_DOMAIN_LIMIT_REACHED", noun: "custom domains" },
  gitConnections: { code: "GIT_CONNECTION_LIMIT_REACHED", noun: "Git connections" },
  backups: { code: "ORGANIZATION_BACKUP_LIMIT_REACHED", noun: "backups" },
  variableBytes: {
    code: "ORGANIZATION_VARIABLES_LIMIT_REACHED",
    noun: "bytes of environment variables, earlier ones that a rollback needs included",
  },
} as const;

/**
 * Every way in which the API refuses, in the order of refusal. Codes are stable: clients branch on them.
 * A new failure is one entry here.
 */
export const failures = {
  // 401
  credentialMissing: () =>
    new Failure(
      401,
      "CREDENTIAL_MISSING",
      "send an API key in x-api-key, or a bearer token in Authorization",
    ),
  credentialInvalid: () => new Failure(401, "CREDENTIAL_INVALID", "the credential is not valid"),

  // 429
  rateLimitExceeded: (retryAfterSeconds: number) =>
    new Failure(429, "RATE_LIMIT_EXCEEDED", "rate limit exceeded, try again later", {
      headers: { "retry-after": String(retryAfterSeconds) },
    }),

  // 403, who may
  organizationRequired: () =>
    new Failure(403, "ORGANIZATION_REQUIRED", "x-organization-id is required with a user token"),
  organizationForbidden: () =>
    new Failure(403, "ORGANIZATION_FORBIDDEN", "the credential does not belong to this organization"),
  /** An API key, or a user who is no owner. */
  ownerRequired: () =>
    new Failure(403, "OWNER_SESSION_REQUIRED", "this needs the session of an owner of the organization"),
  organizationPermission: (permissions: readonly string[]) =>
    new Failure(403, "PERMISSION_DENIED", "insufficient organization permission", {
      extra: { required: permissions.map((permission) => `${permission} on organization:*`) },
    }),
  projectPermission: (permission: string, projectId: string) =>
    failures.projectPermissions([permission], projectId),
  projectPermissions: (permissions: readonly string[], projectId: string): Failure =>
    new Failure(403, "PERMISSION_DENIED", "insufficient project permission", {
      extra: { required: permissions.map((permission) => `${permission} on project:${projectId}`) },
    }),

  // 404, 405
  routeNotFound: () => new Failure(404, "ROUTE_NOT_FOUND", "there is no such route"),
  projectNotFound: () => new Failure(404, "PROJECT_NOT_FOUND", "project not found"),
  instanceNotFound: (instance: string) =>
    new Failure(404, "INSTANCE_NOT_FOUND", `the project has no instance ${instance}`),
  deploymentNotFound: (id: string) =>
    new Failure(404, "DEPLOYMENT_NOT_FOUND", `the project has no deployment ${id}`),
  /** One that never was, that never started, or that an operation of the current billing cycle does not see. */
  jobRunNotFound: (id: string) =>
    new Failure(404, "JOB_RUN_NOT_FOUND", `the job has no run ${id.slice(0, 100)} in this billing cycle`),
  backupNotFound: (id: string) =>
    new Failure(404, "BACKUP_NOT_FOUND", `the project has no backup ${id.slice(0, 100)}`),
  gitConnectionNotFound: (id: string) =>
    new Failure(404, "GIT_CONNECTION_NOT_FOUND", `there is no Git connection ${id.slice(0, 100)}`),
  gitRepositoryNotFound: () =>
    new Failure(404, "GIT_REPOSITORY_NOT_FOUND", "the connection sees no such repository"),
  gitRefNotFound: () =>
    new Failure(404, "GIT_REF_NOT_FOUND", "the repository has no such branch, tag or commit"),
  methodNotAllowed: (allow: string) =>
    new Failure(405, "METHOD_NOT_ALLOWED", `this path has only the methods ${allow}`, { headers: { allow } }),

  buildNotFound: (id: string) =>
    new Failure(404, "BUILD_NOT_FOUND", `the project has no build ${id.slice(0, 100)}`),

  // 400, 408, 413, 415, 431
  /** Deliveries of webhooks: without a valid signature the caller does not learn which connections exist. */
  gitDeliveryUnsigned: () =>
    new Failure(401, "GIT_DELIVERY_UNSIGNED", "the delivery is not signed with the secret of a connection"),
  gitSourceRequired: () =>
    new Failure(400, "GIT_SOURCE_REQUIRED", "the project has no connected Git repository of this kind"),
  githubRepositoryNotConnected: (why: string) =>
    new Failure(
      400,
      "GITHUB_REPOSITORY_NOT_CONNECTED",
      `the project's GitHub repository must be connected first: ${why}`,
    ),
  gitVersionRefOverride: () =>
    new Failure(
      400,
      "GIT_VERSION_REF_OVERRIDE",
      "the project publishes versions: a deploy has an empty body and publishes the latest one that matches",
    ),
  /** `cause` is for the log. */
  validation: (broken: readonly FieldError[], cause?: unknown) => {
    const codes = new Set(broken.map((error) => error.code));
    const [only] = codes;
    const code = codes.size === 1 && only !== undefined ? only : "VALIDATION_FAILED";
    const errors = shownErrors(broken);
    const message = errors.map((error) => `${error.field}: ${error.message}`).join("; ");
    return new Failure(400, code, message, { extra: { errors }, cause });
  },
  /** The operation does not apply to projects of this type. */
  projectTypeMismatch: (type: string, expected: readonly string[]) =>
    new Failure(
      400,
      "PROJECT_TYPE_MISMATCH",
      `this applies only to projects of type ${expected.join(", ")}, and the project's type is ${type}`,
    ),
  templateNotFound: (id: string, revision: number) =>
    new Failure(
      400,
      "TEMPLATE_NOT_FOUND",
      `there is no template ${id.slice(0, 100)} of revision ${revision}`,
    ),
  malformedBody: (reason: string) => new Failure(400, "MALFORMED_BODY", reason),
  malformedRequest: (reason: string) => new Failure(400, "MALFORMED_REQUEST", reason),
  requestTimeout: () => new Failure(408, "REQUEST_TIMEOUT", "the request did not arrive in time"),
  headersTooLarge: () => new Failure(431, "HEADERS_TOO_LARGE", "the headers are too large"),
  bodyTooLarge: (limit: number) =>
    new Failure(413, "BODY_TOO_LARGE", "the body is too large", { extra: { limit } }),
  mediaTypeUnsupported: () => new Failure(415, "MEDIA_TYPE_UNSUPPORTED", "send the body as application/json"),

  // 403, what the plan lacks
  healthcheckNotAvailable: (plan: string) =>
    new Failure(403, "HEALTHCHECK_NOT_AVAILABLE_FOR_PLAN", `plan ${plan} has no healthcheck`),
  autoscalingNotAvailable: (plan: string) =>
    new Failure(403, "AUTOSCALING_NOT_AVAILABLE_FOR_PLAN", `plan ${plan} has no autoscaling`),
  networkAccessNotAvailable: (plan: string) =>
    new Failure(
      403,
      "NETWORK_ACCESS_NOT_AVAILABLE_FOR_PLAN",
      `plan ${plan} takes only an open white list (0.0.0.0/0) and no black list`,
    ),
  customSubdomainNotAvailable: (plan: string) =>
    new Failure(403, "CUSTOM_SUBDOMAIN_NOT_AVAILABLE_FOR_PLAN", `plan ${plan} has no custom subdomain`),

  metricsNotAvailable: (plan: string) =>
    new Failure(403, "METRICS_NOT_AVAILABLE_FOR_PLAN", `plan ${plan} has no snapshots of metrics`),

  // 402
  networkAnalyticsNotAvailable: (plan: string) =>
    new Failure(402, "NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN", `plan ${plan} has no access to metrics`),
  organizationBlocked: () =>
    new Failure(402, "ORGANIZATION_BLOCKED", "the organization is blocked by a pending payment"),

  // 409
  /** `code` and `limit` come from the plan catalog, for example FREE_PLAN_INSTANCE_LIMIT_REACHED and 2. */
  planLimitReached: (code: string, limit: number, counts: string) =>
    new Failure(409, code, `the organization already uses its ${limit} ${counts} on plans of this kind`, {
      extra: { limit },
    }),
  planLimitExceeded: (code: string, limit: number, remaining: number, counts: string) =>
    new Failure(409, code, `more ${counts} are requested than are left: ${remaining} of ${limit}`, {
      extra: { limit, remaining },
    }),
  /** `limit` is that of the catalog's `organizationLimits`. */
  organizationLimitReached: (what: keyof typeof ORGANIZATION_LIMITS, limit: number) => {
    const { code, noun } = ORGANIZATION_LIMITS[what];
    const message = `the organization has no room for more: it may have ${limit} ${noun}; delete some first`;
    return new Failure(409, code, message, { extra: { limit } });
  },
  insufficientPlanCapacity: (plan: string) =>
    new Failure(409, "INSUFFICIENT_PLAN_CAPACITY", `the platform has no capacity left on plan ${plan}`),
  /** @param proof the record by which the caller's organization would prove a custom domain to be its own */
  domainUnavailable: (hostname: string, proof?: { name: string; value: string }) =>
    new Failure(
      409,
      "DOMAIN_UNAVAILABLE",
      proof === undefined
        ? `the domain ${hostname} is not available`
        : `the domain ${hostname} is not available; if it is yours, create the TXT record ${proof.name} with the value ${proof.value}: a claim without a proof gives way to it within minutes, one whose proof is gone within a day`,
      { extra: { hostname } },
    ),
  projectPrivate: () =>
    new Failure(409, "PROJECT_PRIVATE", "the project is private: a private project has no domain"),
  exposureChangeInProgress: () =>
    new Failure(409, "EXPOSURE_CHANGE_IN_PROGRESS", "a change of exposure is already running"),
  deploymentNotAvailable: (id: string) =>
    new Failure(409, "DEPLOYMENT_NOT_AVAILABLE", `the settings of deployment ${id} are no longer kept`),
  environmentTooLarge: (limit: number) =>
    new Failure(409, "ENVIRONMENT_TOO_LARGE", "the project's Secrets hold more than one answer may", {
      extra: { limit },
    }),
  environmentIncomplete: (secret: string) =>
    new Failure(
      409,
      "ENVIRONMENT_INCOMPLETE",
      `the project takes variables from the Secret ${secret}, which does not exist`,
      { extra: { secret } },
    ),
  idempotencyKeyConflict: () =>
    new Failure(409, "IDEMPOTENCY_KEY_CONFLICT", "this Idempotency-Key was used with a different body"),
  jobRunsPending: (active: boolean) =>
    new Failure(
      409,
      "JOB_RUNS_PENDING",
      `${active ? "a run of the job is active" : "the charge of a run is not recorded yet"}: the project is kept, and no ` +
        "new run starts; try again once every run has ended and is billed",
    ),
  jobRunCancellationUnavailable: () =>
    new Failure(
      409,
      "JOB_RUN_CANCELLATION_UNAVAILABLE",
      "the run cannot be cancelled safely: wait for it to finish or to reach its time limit",
    ),
  jobRunActive: () => new Failure(409, "JOB_RUN_ACTIVE", "a run of the job is active"),
  jobScheduleClosed: () =>
    new Failure(
      409,
      "JOB_SCHEDULE_CLOSED",
      "the job was about to be deleted and starts no run; a change of its schedule opens it again",
    ),
  jobNotAccepted: () =>
    new Failure(
      409,
      "JOB_NOT_ACCEPTED",
      "the platform does not run the job as it is: its plan, a Secret or a limit stands against it",
    ),
  backupActive: () => new Failure(409, "BACKUP_ACTIVE", "a backup of the project is being made"),
  backupNotComplete: (id: string) =>
    new Failure(
      409,
      "BACKUP_NOT_COMPLETE",
      `the backup ${id} is not complete, has failed or is being deleted`,
    ),
  gitConnectionUnavailable: (why: string) => new Failure(409, "GIT_CONNECTION_UNAVAILABLE", why),
  gitConnectionOperationPending: (what: string) =>
    new Failure(
      409,
      "GIT_CONNECTION_OPERATION_PENDING",
      `the connection stays as it is: ${what}; try again once that is over`,
    ),
  gitCapabilityUnavailable: (why: string) => new Failure(409, "GIT_CAPABILITY_UNAVAILABLE", why),
  gitSourceCreationUnavailable: () =>
    new Failure(
      409,
      "GIT_SOURCE_CREATION_UNAVAILABLE",
      "repositories of a github connection are given in config.github, not in source",
    ),
  gitVersionNotFound: (pattern: string) =>
    new Failure(
      409,
      "GIT_VERSION_NOT_FOUND",
      `the repository has no published version that matches ${pattern}`,
    ),
  gitSourceChanged: () =>
    new Failure(409, "GIT_SOURCE_CHANGED", "the source was changed during the update: read it and try again"),
  projectNotPublished: () =>
    new Failure(
      409,
      "PROJECT_NOT_PUBLISHED",
      "no version of the project has been published that could be kept: without its source nothing would run",
    ),
  planChangeInProgress: () =>
    new Failure(409, "PLAN_CHANGE_IN_PROGRESS", "a change of the plan is already running"),
  managedServiceOperationInProgress: () =>
    new Failure(
      409,
      "MANAGED_SERVICE_OPERATION_IN_PROGRESS",
      "an operation on the service is in progress: it is being deleted",
    ),
  projectPaused: () => new Failure(409, "PROJECT_PAUSED", "the project is paused"),
  projectAlreadyDeleted: () => new Failure(409, "PROJECT_ALREADY_DELETED", "the project is already deleted"),

  // 503 and what was not foreseen
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
      "the plan's capacity cannot be told now, try again",
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
  issuerUnavailable: () =>
    new Failure(503, "ISSUER_UNAVAILABLE", "the token's issuer does not answer, try again", {
      headers: { "retry-after": "5" },
    }),
  ledgerUnavailable: (cause?: unknown) =>
    new Failure(503, "LEDGER_UNAVAILABLE", "the ledger does not answer, try again", {
      headers: { "retry-after": "5" },
      cause,
    }),
  analyticsNotConfigured: () =>
    new Failure(503, "ANALYTICS_NOT_CONFIGURED", "this platform keeps no network analytics"),
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
