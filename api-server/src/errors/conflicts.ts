import { Failure } from "./failure.ts";

/** What an organization has a limit of, and its words in a refusal. */
const ORGANIZATION_LIMITS = {
  projects: { code: "ORGANIZATION_PROJECT_LIMIT_REACHED", noun: "projects" },
  customDomains: { code: "ORGANIZATION_CUSTOM_DOMAIN_LIMIT_REACHED", noun: "custom domains" },
  gitConnections: { code: "GIT_CONNECTION_LIMIT_REACHED", noun: "Git connections" },
  variableGroups: { code: "VARIABLE_GROUP_LIMIT_REACHED", noun: "variable groups" },
  logDrains: { code: "LOG_DRAIN_LIMIT_REACHED", noun: "log drains" },
  backups: { code: "ORGANIZATION_BACKUP_LIMIT_REACHED", noun: "backups" },
  variableBytes: {
    code: "ORGANIZATION_VARIABLES_LIMIT_REACHED",
    noun: "bytes of environment variables, earlier ones that a rollback needs included",
  },
} as const;

/** What the state of a project, an organization or the platform's capacity refuses: 409. Part of the catalog. */
export const conflicts = {
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
        : `the domain ${hostname} is not available; if it is yours, create the TXT record ${proof.name} with the value ${proof.value}: a claim without a proof gives way to it within minutes, one whose proof was removed within a day`,
      { extra: { hostname } },
    ),
  projectExists: () =>
    new Failure(409, "PROJECT_EXISTS", "a project with this id exists: nothing is undeleted in its place"),
  deletedVolumeMissing: () =>
    new Failure(409, "DELETED_VOLUME_MISSING", "a volume of the deleted project does not exist any more"),
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
  /** @param projects ids of those that attach it; the answer names some */
  variableGroupInUse: (id: string, projects: readonly string[]) =>
    new Failure(
      409,
      "VARIABLE_GROUP_IN_USE",
      `${projects.length} projects attach the variable group ${id}; detach it from them first`,
      { extra: { projects: projects.slice(0, 20), project_count: projects.length } },
    ),
  /** Its Secret is one that kubectl or another operator writes. */
  variableGroupExternal: (secret: string) =>
    new Failure(
      409,
      "VARIABLE_GROUP_EXTERNAL",
      `the variables are in the Secret ${secret}, which is not written here`,
      { extra: { secret } },
    ),
  variableGroupIncomplete: (secret: string) =>
    new Failure(
      409,
      "VARIABLE_GROUP_INCOMPLETE",
      `the Secret ${secret} with the group's variables does not exist`,
      { extra: { secret } },
    ),
  variableGroupConflict: () =>
    new Failure(409, "VARIABLE_GROUP_CONFLICT", "another change of the variable group is under way"),
  webhookLimitReached: (limit: number) =>
    new Failure(409, "WEBHOOK_LIMIT_REACHED", `an organization has at most ${limit} webhooks`, {
      extra: { limit },
    }),
  webhookConflict: () => new Failure(409, "WEBHOOK_CONFLICT", "another change of the webhook is under way"),
  webhookDisabled: () =>
    new Failure(409, "WEBHOOK_DISABLED", "nothing is sent to the webhook: enable it first"),
  webhookDeliveryPending: () =>
    new Failure(409, "WEBHOOK_DELIVERY_PENDING", "the delivery is pending: it is sent as soon as it is due"),
  webhookDeliveriesFull: () =>
    new Failure(409, "WEBHOOK_DELIVERIES_FULL", "too many events are sent to the organization's webhooks"),
  emailNotConfigured: () =>
    new Failure(409, "EMAIL_NOT_CONFIGURED", "this platform has no mail server: it sends no e-mail"),
  emailRecipientLimitReached: (limit: number) =>
    new Failure(409, "EMAIL_RECIPIENT_LIMIT_REACHED", `an organization has at most ${limit} recipients`, {
      extra: { limit },
    }),
  emailRecipientExists: () =>
    new Failure(409, "EMAIL_RECIPIENT_EXISTS", "the organization has a recipient with this address"),
  emailRecipientDisabled: () =>
    new Failure(409, "EMAIL_RECIPIENT_DISABLED", "nothing is sent to the recipient: enable it first"),
  emailRecipientUnconfirmed: () =>
    new Failure(409, "EMAIL_RECIPIENT_UNCONFIRMED", "the recipient has not confirmed its address"),
  emailRecipientConfirmed: () =>
    new Failure(409, "EMAIL_RECIPIENT_CONFIRMED", "the recipient has confirmed its address"),
  emailConfirmationWrong: () =>
    new Failure(409, "EMAIL_CONFIRMATION_WRONG", "this is not the code of the newest confirmation mail"),
  emailConfirmationExpired: () =>
    new Failure(409, "EMAIL_CONFIRMATION_EXPIRED", "no code confirms any more: request a new one"),
  emailConfirmationLimitReached: () =>
    new Failure(
      409,
      "EMAIL_CONFIRMATION_LIMIT_REACHED",
      "too many confirmation mails were requested by the organization or for the address: try again later",
    ),
  emailConfirmationNotRepeatable: () =>
    new Failure(
      409,
      "EMAIL_CONFIRMATION_NOT_REPEATABLE",
      "a confirmation mail is not sent again: request a new one",
    ),
  logDrainConflict: () =>
    new Failure(409, "LOG_DRAIN_CONFLICT", "another change of the log drain is under way"),
  /** Its Secret is one that kubectl or another operator writes. */
  logDrainExternal: (secret: string) =>
    new Failure(
      409,
      "LOG_DRAIN_EXTERNAL",
      `the credentials are in the Secret ${secret}, which is not written here`,
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
  runNotAccepted: () =>
    new Failure(
      409,
      "RUN_NOT_ACCEPTED",
      "the platform does not run the project as it is: its plan, a Secret or a limit stands against it",
    ),
  projectNotDeployed: () =>
    new Failure(
      409,
      "PROJECT_NOT_DEPLOYED",
      "no deployment of the project has ever succeeded: there is no image to run the command in",
    ),
  runLimitReached: (of: "project" | "organization", limit: number) =>
    new Failure(409, "RUN_LIMIT_REACHED", `the ${of} has ${limit} active runs, and may have no more`, {
      extra: { limit },
    }),
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
  instanceNotRunning: (instance: string) =>
    new Failure(409, "INSTANCE_NOT_RUNNING", `the container of instance ${instance} does not run`),
  execSessionLimitReached: (scope: "project" | "organization", limit: number) =>
    new Failure(
      409,
      "EXEC_SESSION_LIMIT_REACHED",
      `the ${scope} already has its ${limit} sessions of commands: close one first`,
      { extra: { scope, limit } },
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
} as const;
