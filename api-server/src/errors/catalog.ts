import { conflicts } from "./conflicts.ts";
import { Failure, type FieldError, shownErrors } from "./failure.ts";
import { unavailable } from "./unavailable.ts";

/**
 * Every way in which the API refuses, in the order of refusal. Codes are stable: clients branch on them.
 * A new failure is one entry here, in `conflicts.ts` or in `unavailable.ts`.
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
  /** The session of a command has no other form. */
  webSocketRequired: () =>
    new Failure(
      426,
      "WEBSOCKET_REQUIRED",
      "connect by WebSocket (RFC 6455, version 13) with the subprotocol v5.channel.k8s.io",
      { headers: { upgrade: "websocket" } },
    ),
  deploymentNotFound: (id: string) =>
    new Failure(404, "DEPLOYMENT_NOT_FOUND", `the project has no deployment ${id}`),
  /** One that does not exist, that never started, or that is not in the current billing cycle. */
  jobRunNotFound: (id: string) =>
    new Failure(404, "JOB_RUN_NOT_FOUND", `the job has no run ${id.slice(0, 100)} in this billing cycle`),
  backupNotFound: (id: string) =>
    new Failure(404, "BACKUP_NOT_FOUND", `the project has no backup ${id.slice(0, 100)}`),
  /** None was deleted, its plan retains no volumes, or they are deleted by now. */
  deletedProjectNotFound: () =>
    new Failure(404, "DELETED_PROJECT_NOT_FOUND", "there is no such project that could be undeleted"),
  variableGroupNotFound: (id: string) =>
    new Failure(404, "VARIABLE_GROUP_NOT_FOUND", `there is no variable group ${id.slice(0, 100)}`),
  budgetNotFound: () => new Failure(404, "BUDGET_NOT_FOUND", "the organization has no budget"),
  webhookNotFound: (id: string) =>
    new Failure(404, "WEBHOOK_NOT_FOUND", `there is no webhook ${id.slice(0, 100)}`),
  emailRecipientNotFound: (id: string) =>
    new Failure(404, "EMAIL_RECIPIENT_NOT_FOUND", `there is no recipient ${id.slice(0, 100)}`),
  emailDeliveryNotFound: (id: string) =>
    new Failure(404, "EMAIL_DELIVERY_NOT_FOUND", `the recipient has no delivery ${id.slice(0, 100)}`),
  emailTokenUnknown: () =>
    new Failure(404, "EMAIL_TOKEN_UNKNOWN", "no recipient of e-mail unsubscribes with this link"),
  webhookDeliveryNotFound: (id: string) =>
    new Failure(404, "WEBHOOK_DELIVERY_NOT_FOUND", `the webhook has no delivery ${id.slice(0, 100)}`),
  logDrainNotFound: (id: string) =>
    new Failure(404, "LOG_DRAIN_NOT_FOUND", `there is no log drain ${id.slice(0, 100)}`),
  invoiceNotFound: (id: string) =>
    new Failure(404, "INVOICE_NOT_FOUND", `there is no invoice ${id.slice(0, 100)}`),
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
  paymentWebhookUnsigned: () =>
    new Failure(
      401,
      "PAYMENT_WEBHOOK_UNSIGNED",
      "the webhook is not signed with a secret of this platform, or not within the last five minutes",
    ),
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
  sleepNotAvailable: (plan: string) =>
    new Failure(403, "SLEEP_NOT_AVAILABLE_FOR_PLAN", `projects of plan ${plan} do not sleep`),
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

  budgetExhausted: () =>
    new Failure(402, "BUDGET_EXHAUSTED", "the organization has spent its budget of this billing cycle"),

  ...conflicts,
  ...unavailable,
} as const;
