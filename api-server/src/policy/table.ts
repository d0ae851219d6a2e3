import type { Permission } from "./permissions.ts";

/** The policy table: the access and the rate limit of every operation. */

/** Who may call an operation. */
export type Access =
  /** No credential. */
  | { kind: "public" }
  /** No credential of the API: the handler verifies a signature, or a password that has no other use. */
  | { kind: "signature" }
  /** The same, of the Git connection of the path: the body counts as its organization's before it is read. */
  | { kind: "connection" }
  /** Any valid credential of an organization. */
  | { kind: "credential" }
  /** A session of the organization's owner; an API key cannot replace it. */
  | { kind: "owner" }
  /** A grant on `organization:*`. */
  | { kind: "organization"; permission: Permission }
  /** A grant on `project:*`: what concerns no project in particular. */
  | { kind: "everyProject"; permission: Permission }
  /** A grant on `organization:*`, which one depends on `config.type_project` of the body. */
  | { kind: "create"; byType: Readonly<Record<string, Permission>> }
  /** A grant on `project:<id>` of the path. `missing` decides who answers for a project that does not exist. */
  | {
      kind: "project";
      permission: Permission;
      missing: "refuse" | "handler";
      /** Whether it reads runs of jobs, and so must see the last write of one. */
      readsRuns?: true;
    };

export interface RateLimit {
  limit: number;
  windowSeconds: number;
  /** Counted per credential, or per source address, or per source address and organization where one address sends for many. */
  per: "credential" | "ip" | "organization";
}

export interface Policy {
  access: Access;
  rateLimit: RateLimit;
  /** Whether the call leaves a line in the audit log. */
  audited: boolean;
}

const perMinute = (limit: number, per: RateLimit["per"] = "credential"): RateLimit => ({
  limit,
  windowSeconds: 60,
  per,
});

/** An operation on one project that has no limit of its own in the specification. */
const onProject = (permission: Permission, { audited }: { audited: boolean }): Policy => ({
  access: { kind: "project", permission, missing: "refuse" },
  rateLimit: perMinute(60),
  audited,
});

/** An operation on a job's runs. */
const onRuns = (permission: Permission, { audited }: { audited: boolean }): Policy => ({
  access: { kind: "project", permission, missing: "refuse", readsRuns: true },
  rateLimit: perMinute(60),
  audited,
});

/** An operation on what outlives its project. */
const onOutlived = (permission: Permission, { audited }: { audited: boolean }): Policy => ({
  access: { kind: "project", permission, missing: "handler" },
  rateLimit: perMinute(60),
  audited,
});

/** A setting that the specification limits to 10 calls a minute from one address. */
const setting = (permission: Permission): Policy => ({
  access: { kind: "project", permission, missing: "refuse" },
  rateLimit: perMinute(10, "ip"),
  audited: true,
});

/** Operations on Git connections. */
const onGit: Policy = {
  access: { kind: "everyProject", permission: "project.source.update" },
  rateLimit: perMinute(60),
  audited: false,
};

/** Operations on what several projects of an organization share. */
const onOrganization = (permission: Permission, { audited }: { audited: boolean }): Policy => ({
  access: { kind: "organization", permission },
  rateLimit: perMinute(60),
  audited,
});

/** Operations on Git credentials. */
const gitCredential: Policy = { access: { kind: "owner" }, rateLimit: perMinute(60), audited: true };

/** An operation that the specification limits by source address. */
const byAddress = (permission: Permission, limit: number, { audited = false } = {}): Policy => ({
  access: { kind: "project", permission, missing: "refuse" },
  rateLimit: perMinute(limit, "ip"),
  audited,
});

/** What nodes call: one address has many projects. */
const bySignature = (limit: number): Policy => ({
  access: { kind: "signature" },
  rateLimit: perMinute(limit, "ip"),
  audited: false,
});

const publicRead = (limit: number): Policy => ({
  access: { kind: "public" },
  rateLimit: perMinute(limit, "ip"),
  audited: false,
});

/**
 * One line per operation: who may call it and how often. It drives the guard, the OpenAPI document and the tests.
 * An operation without a line cannot be registered.
 */
export const policies = {
  listHttpPlans: publicRead(50),
  listJobPlans: publicRead(60),
  listStoragePlans: publicRead(50),
  listDatabasePlans: publicRead(10),
  listDatabaseCatalog: publicRead(100),
  readOpenApi: publicRead(60),
  // A page is six files.
  readDocs: publicRead(60),
  readDocsFile: publicRead(300),
  readConsole: publicRead(60),
  // Some thirty files; a browser keeps them, but for the first visit.
  readConsoleFile: publicRead(1_000),
  listTemplates: { access: { kind: "credential" }, rateLimit: perMinute(60), audited: false },
  createProject: {
    access: {
      kind: "create",
      byType: {
        http: "project.create",
        worker: "project.create",
        job: "project.create",
        postgresql: "database.create",
        mariadb: "database.create",
        clickhouse: "database.create",
        valkey: "managed_service.create",
      },
    },
    rateLimit: perMinute(10),
    audited: true,
  },
  listProjects: { access: { kind: "credential" }, rateLimit: perMinute(100), audited: false },
  readProject: {
    access: { kind: "project", permission: "project.read", missing: "refuse" },
    rateLimit: perMinute(100, "ip"),
    audited: false,
  },
  deleteProject: {
    access: { kind: "project", permission: "project.delete", missing: "handler" },
    rateLimit: perMinute(10),
    audited: true,
  },
  listDeletedProjects: { access: { kind: "credential" }, rateLimit: perMinute(60), audited: false },
  undeleteProject: onOutlived("project.delete", { audited: true }),
  updateProjectName: setting("project.name.update"),
  updateProjectDescription: setting("project.description.update"),
  updateProjectDomain: setting("project.domain.update"),
  updateProjectCustomDomains: setting("project.domain.update"),
  updateProjectExposure: {
    access: { kind: "project", permission: "project.domain.update", missing: "refuse" },
    rateLimit: { limit: 5, windowSeconds: 300, per: "credential" },
    audited: true,
  },
  updateProjectHealth: onProject("project.health.update", { audited: true }),
  updateProjectPreDeploy: onProject("project.pre-deploy.update", { audited: true }),
  updateProjectSleep: onProject("project.sleep.update", { audited: true }),
  readProjectEnvs: onProject("project.envs.read", { audited: false }),
  updateProjectEnvs: onProject("project.envs.update", { audited: true }),
  updateProjectVariableGroups: onProject("project.envs.update", { audited: true }),
  updateProjectImage: onProject("project.image.update", { audited: true }),
  updateProjectCommand: onProject("project.image.update", { audited: true }),
  updateProjectAutoscaling: onProject("project.autoscaling.update", { audited: true }),
  updateProjectPlan: onProject("project.plan.update", { audited: true }),
  updateProjectSchedule: onProject("project.schedule.update", { audited: true }),
  pauseProject: onProject("project.lifecycle.update", { audited: true }),
  resumeProject: onProject("project.lifecycle.update", { audited: true }),
  rollbackProject: onProject("project.deploy.trigger", { audited: true }),
  listProjectDeployments: onProject("project.read", { audited: false }),
  readProjectLogs: onProject("project.logs.read", { audited: false }),
  execInstance: onProject("project.exec", { audited: true }),
  searchProjectLogs: onProject("project.logs.read", { audited: false }),
  readDatabaseConnection: onProject("project.read", { audited: false }),
  renewDatabaseCredentials: onProject("database.credentials.renew", { audited: true }),
  readProjectMetrics: onProject("project.metrics.read", { audited: false }),
  readMetricsCapabilities: onProject("project.metrics.read", { audited: false }),
  readProjectAlerts: onProject("project.alerts.read", { audited: false }),
  updateProjectAlerts: onProject("project.alerts.update", { audited: true }),
  readNetworkSummary: onProject("project.metrics.read", { audited: false }),
  listNetworkStatusCodes: onProject("project.metrics.read", { audited: false }),
  listNetworkRoutes: onProject("project.metrics.read", { audited: false }),
  listNetworkUserAgents: onProject("project.metrics.read", { audited: false }),
  listNetworkRequestEvents: onProject("project.metrics.read", { audited: false }),
  listNetworkSourceIps: onProject("project.metrics.read", { audited: false }),
  listBackups: onOutlived("project.backup.read", { audited: false }),
  readBackup: onOutlived("project.backup.read", { audited: false }),
  createBackup: onProject("project.backup.create", { audited: true }),
  deleteBackup: onOutlived("project.backup.delete", { audited: true }),
  verifyBackup: onOutlived("project.backup.update", { audited: true }),
  restoreBackup: onOutlived("project.backup.restore", { audited: true }),
  readBackupPolicy: onProject("project.backup.read", { audited: false }),
  updateBackupPolicy: onProject("project.backup.update", { audited: true }),
  listVariableGroups: onOrganization("organization.variable-groups.read", { audited: false }),
  readVariableGroup: onOrganization("organization.variable-groups.read", { audited: false }),
  createVariableGroup: onOrganization("organization.variable-groups.update", { audited: true }),
  updateVariableGroup: onOrganization("organization.variable-groups.update", { audited: true }),
  deleteVariableGroup: onOrganization("organization.variable-groups.update", { audited: true }),
  listWebhooks: onOrganization("organization.webhooks.read", { audited: false }),
  readWebhook: onOrganization("organization.webhooks.read", { audited: false }),
  createWebhook: onOrganization("organization.webhooks.update", { audited: true }),
  updateWebhook: onOrganization("organization.webhooks.update", { audited: true }),
  deleteWebhook: onOrganization("organization.webhooks.update", { audited: true }),
  rotateWebhookSecret: onOrganization("organization.webhooks.update", { audited: true }),
  listWebhookDeliveries: onOrganization("organization.webhooks.read", { audited: false }),
  redeliverWebhook: onOrganization("organization.webhooks.update", { audited: true }),
  testWebhook: onOrganization("organization.webhooks.update", { audited: true }),
  listEmailRecipients: onOrganization("organization.webhooks.read", { audited: false }),
  readEmailRecipient: onOrganization("organization.webhooks.read", { audited: false }),
  createEmailRecipient: onOrganization("organization.webhooks.update", { audited: true }),
  updateEmailRecipient: onOrganization("organization.webhooks.update", { audited: true }),
  deleteEmailRecipient: onOrganization("organization.webhooks.update", { audited: true }),
  requestEmailConfirmation: onOrganization("organization.webhooks.update", { audited: true }),
  confirmEmailRecipient: onOrganization("organization.webhooks.update", { audited: true }),
  listEmailDeliveries: onOrganization("organization.webhooks.read", { audited: false }),
  redeliverEmail: onOrganization("organization.webhooks.update", { audited: true }),
  testEmailRecipient: onOrganization("organization.webhooks.update", { audited: true }),
  readUnsubscribePage: bySignature(60),
  unsubscribeEmail: bySignature(60),
  listLogDrains: onOrganization("organization.log-drains.read", { audited: false }),
  readLogDrain: onOrganization("organization.log-drains.read", { audited: false }),
  createLogDrain: onOrganization("organization.log-drains.update", { audited: true }),
  updateLogDrain: onOrganization("organization.log-drains.update", { audited: true }),
  deleteLogDrain: onOrganization("organization.log-drains.update", { audited: true }),
  readUsage: {
    access: { kind: "everyProject", permission: "project.billing.read" },
    rateLimit: perMinute(60),
    audited: false,
  },
  readProjectCost: onProject("project.billing.read", { audited: false }),
  listInvoices: onOrganization("organization.invoices.read", { audited: false }),
  readInvoice: onOrganization("organization.invoices.read", { audited: false }),
  listInvoiceCharges: onOrganization("organization.invoices.read", { audited: false }),
  readBudget: onOrganization("organization.budget.read", { audited: false }),
  updateBudget: onOrganization("organization.budget.update", { audited: true }),
  deleteBudget: onOrganization("organization.budget.update", { audited: true }),
  listGitProviders: { access: { kind: "credential" }, rateLimit: perMinute(60), audited: false },
  listGitRuntimes: { access: { kind: "credential" }, rateLimit: perMinute(60), audited: false },
  listGitConnections: onGit,
  createGitConnection: gitCredential,
  updateGitCredentials: gitCredential,
  revokeGitConnection: gitCredential,
  resolveGitRepository: onGit,
  listGitRepositories: onGit,
  listGitBranches: onGit,
  // One address of a Git server has many organizations.
  receiveGitHook: {
    access: { kind: "connection" },
    rateLimit: perMinute(600, "organization"),
    audited: false,
  },
  receiveStripePayment: bySignature(600),
  receiveGenericPayment: bySignature(600),
  readRegistryToken: bySignature(1_200),
  createRegistryToken: bySignature(1_200),
  readProjectSource: onProject("project.source.update", { audited: false }),
  updateProjectSource: onProject("project.source.update", { audited: true }),
  deleteProjectSource: onProject("project.source.update", { audited: true }),
  updateBuildSettings: onProject("project.source.update", { audited: true }),
  listSourceBranches: onProject("project.source.update", { audited: false }),
  deployProject: byAddress("project.deploy.trigger", 10, { audited: true }),
  listBuilds: byAddress("project.logs.read", 60),
  readBuild: byAddress("project.logs.read", 60),
  readBuildLogs: byAddress("project.logs.read", 120),
  deployGithubProject: byAddress("project.deploy.trigger", 10, { audited: true }),
  listGithubBuilds: byAddress("project.logs.read", 50),
  readGithubBuild: byAddress("project.logs.read", 50),
  readGithubBuildLogs: byAddress("project.logs.read", 200),
  updateGithubCommands: onProject("project.source.update", { audited: true }),
  updateGithubDeploySettings: {
    access: { kind: "project", permission: "project.source.update", missing: "refuse" },
    rateLimit: perMinute(10),
    audited: true,
  },
  listJobRuns: onRuns("project.read", { audited: false }),
  readJobCostSummary: onRuns("project.billing.read", { audited: false }),
  startJobRun: onRuns("project.deploy.trigger", { audited: true }),
  cancelJobRun: onRuns("project.job-run.cancel", { audited: true }),
  readJobRunLogs: onRuns("project.logs.read", { audited: false }),
  readJobRunMetrics: onRuns("project.metrics.read", { audited: false }),
  listRuns: onRuns("project.read", { audited: false }),
  readRunCostSummary: onRuns("project.billing.read", { audited: false }),
  readRun: onRuns("project.read", { audited: false }),
  startRun: onRuns("project.run.start", { audited: true }),
  cancelRun: onRuns("project.job-run.cancel", { audited: true }),
  readRunLogs: onRuns("project.logs.read", { audited: false }),
} as const satisfies Record<string, Policy>;

export type OperationId = keyof typeof policies;

/** The policy of an operation, or undefined for a name that is not in the table. */
export function policyOf(operationId: string): Policy | undefined {
  return Object.hasOwn(policies, operationId) ? policies[operationId as OperationId] : undefined;
}
