import { readAlerts, updateAlerts } from "./alerts/routes.ts";
import {
  networkRequestEvents,
  networkRoutes,
  networkSourceIps,
  networkStatusCodes,
  networkSummary,
  networkUserAgents,
} from "./analytics/routes/routes.ts";
import {
  createBackupRoute,
  listBackupsRoute,
  readBackup,
  removeBackup,
  verifyBackup,
} from "./backups/routes/backups.ts";
import { readBackupPolicy, updateBackupPolicy } from "./backups/routes/policy.ts";
import { restoreBackup } from "./backups/routes/restore.ts";
import { readBudget, removeBudget, updateBudget } from "./budgets/routes.ts";
import { deploy, githubDeploy } from "./builds/routes/deploy.ts";
import {
  listBuilds,
  listGithubBuilds,
  readBuild,
  readBuildLogs,
  readGithubBuild,
  readGithubBuildLogs,
} from "./builds/routes/reads.ts";
import {
  listSourceBranches,
  readSource,
  removeSource,
  updateBuildSettings,
  updateSource,
} from "./builds/routes/source.ts";
import {
  databaseCatalog,
  databasePlans,
  httpPlans,
  jobPlans,
  storagePlans,
  templates,
} from "./catalog/routes.ts";
import { readConsole, readConsoleFile } from "./console/routes.ts";
import { databaseConnection, renewDatabaseCredentials } from "./databases/routes/connection.ts";
import { updateCustomDomains, updateDomain, updateExposure } from "./domains/routes.ts";
import { exec } from "./exec/routes/exec.ts";
import { gitProviders, runtimeCatalog } from "./git/routes/catalog.ts";
import {
  createGitConnection,
  listGitConnections,
  revokeGitConnection,
  updateGitCredentials,
} from "./git/routes/connections.ts";
import { updateGithubCommands, updateGithubDeploySettings } from "./git/routes/github.ts";
import { receiveGitHook } from "./git/routes/hook.ts";
import { listGitBranches, listGitRepositories, resolveGitRepository } from "./git/routes/repositories.ts";
import type { AnyRoute } from "./http/route.ts";
import { listInvoiceChargesRoute, listInvoicesRoute, readInvoice } from "./invoices/routes.ts";
import { cancelJobRun, startJobRun, updateSchedule } from "./jobs/routes/changes.ts";
import { cancelOneOffRun, startOneOffRun } from "./jobs/routes/one-off-changes.ts";
import {
  listOneOffRuns,
  oneOffCostSummary,
  oneOffRunLogs,
  readOneOffRun,
} from "./jobs/routes/one-off-reads.ts";
import { costSummary, jobRunLogs, jobRunMetrics, listJobRuns } from "./jobs/routes/reads.ts";
import {
  createLogDrain,
  deleteLogDrain,
  listLogDrains,
  readLogDrain,
  updateLogDrain,
} from "./log-drains/routes.ts";
import { logs } from "./logs/routes/logs.ts";
import { searchLogs } from "./logs/routes/search.ts";
import { metricsCapabilities, projectMetrics } from "./metrics/routes.ts";
import {
  listWebhookDeliveriesRoute,
  redeliverWebhookRoute,
  testWebhook,
} from "./notifications/routes/deliveries.ts";
import {
  listEmailDeliveries,
  redeliverEmail,
  testEmailRecipient,
} from "./notifications/routes/email-deliveries.ts";
import {
  confirmEmailRecipientRoute,
  createEmailRecipientRoute,
  deleteEmailRecipient,
  listEmailRecipients,
  readEmailRecipient,
  requestEmailConfirmation,
  updateEmailRecipient,
} from "./notifications/routes/email-recipients.ts";
import { readUnsubscribePage, unsubscribeEmail } from "./notifications/routes/unsubscribe.ts";
import {
  createWebhookRoute,
  deleteWebhookRoute,
  listWebhooksRoute,
  readWebhook,
  rotateWebhookSecret,
  updateWebhookRoute,
} from "./notifications/routes/webhooks.ts";
import { docs, docsFile } from "./openapi/docs.ts";
import { readOpenApi } from "./openapi/document.ts";
import { receiveGenericPayment, receiveStripePayment } from "./payments/routes.ts";
import { updateAutoscaling } from "./projects/routes/autoscaling.ts";
import { updateCommand } from "./projects/routes/command.ts";
import { create } from "./projects/routes/create.ts";
import { deployments, rollback } from "./projects/routes/deployments.ts";
import { readEnvs, updateEnvs } from "./projects/routes/envs.ts";
import { updateHealth } from "./projects/routes/health.ts";
import { pause, remove, resume } from "./projects/routes/lifecycle.ts";
import { updatePreDeploy } from "./projects/routes/pre-deploy.ts";
import { list, read } from "./projects/routes/reads.ts";
import { updateDescription, updateImage, updateName, updatePlan } from "./projects/routes/settings.ts";
import { updateSleep } from "./projects/routes/sleep.ts";
import { createRegistryToken, readRegistryToken } from "./registry/token.ts";
import { listDeleted, undelete } from "./undelete/routes.ts";
import { readProjectCost, readUsage } from "./usage/routes.ts";
import { attachVariableGroups } from "./variable-groups/routes/attach.ts";
import {
  createVariableGroup,
  deleteVariableGroup,
  listVariableGroups,
  readVariableGroup,
  updateVariableGroup,
} from "./variable-groups/routes/groups.ts";

/** Every operation of the API. A new one is a file and a line here, and a line in the policy table. */
export const routes: readonly AnyRoute[] = [
  httpPlans,
  jobPlans,
  storagePlans,
  databasePlans,
  databaseCatalog,
  templates,
  create,
  list,
  read,
  logs,
  exec,
  searchLogs,
  deployments,
  readEnvs,
  updateEnvs,
  updateImage,
  attachVariableGroups,
  updatePlan,
  updateSchedule,
  pause,
  resume,
  rollback,
  remove,
  listDeleted,
  undelete,
  updateName,
  updateDescription,
  updateHealth,
  updateCommand,
  updateAutoscaling,
  updatePreDeploy,
  updateSleep,
  updateDomain,
  updateCustomDomains,
  updateExposure,
  databaseConnection,
  renewDatabaseCredentials,
  listBackupsRoute,
  createBackupRoute,
  readBackupPolicy,
  updateBackupPolicy,
  readBackup,
  removeBackup,
  verifyBackup,
  restoreBackup,
  projectMetrics,
  metricsCapabilities,
  readAlerts,
  updateAlerts,
  networkSummary,
  networkStatusCodes,
  networkRoutes,
  networkUserAgents,
  networkRequestEvents,
  networkSourceIps,
  listVariableGroups,
  createVariableGroup,
  readVariableGroup,
  updateVariableGroup,
  deleteVariableGroup,
  listWebhooksRoute,
  createWebhookRoute,
  readWebhook,
  updateWebhookRoute,
  deleteWebhookRoute,
  rotateWebhookSecret,
  testWebhook,
  listWebhookDeliveriesRoute,
  redeliverWebhookRoute,
  listEmailRecipients,
  createEmailRecipientRoute,
  readEmailRecipient,
  updateEmailRecipient,
  deleteEmailRecipient,
  requestEmailConfirmation,
  confirmEmailRecipientRoute,
  testEmailRecipient,
  listEmailDeliveries,
  redeliverEmail,
  readUnsubscribePage,
  unsubscribeEmail,
  listLogDrains,
  createLogDrain,
  readLogDrain,
  updateLogDrain,
  deleteLogDrain,
  listInvoicesRoute,
  readInvoice,
  listInvoiceChargesRoute,
  receiveStripePayment,
  receiveGenericPayment,
  readBudget,
  updateBudget,
  removeBudget,
  gitProviders,
  runtimeCatalog,
  listGitConnections,
  createGitConnection,
  updateGitCredentials,
  revokeGitConnection,
  resolveGitRepository,
  listGitRepositories,
  listGitBranches,
  receiveGitHook,
  readSource,
  updateSource,
  removeSource,
  updateBuildSettings,
  listSourceBranches,
  deploy,
  listBuilds,
  readBuild,
  readBuildLogs,
  githubDeploy,
  listGithubBuilds,
  readGithubBuild,
  readGithubBuildLogs,
  updateGithubCommands,
  updateGithubDeploySettings,
  readRegistryToken,
  createRegistryToken,
  listJobRuns,
  costSummary,
  startJobRun,
  cancelJobRun,
  jobRunLogs,
  jobRunMetrics,
  readUsage,
  readProjectCost,
  listOneOffRuns,
  startOneOffRun,
  oneOffCostSummary,
  readOneOffRun,
  cancelOneOffRun,
  oneOffRunLogs,
  readOpenApi(() => routes),
  docs,
  docsFile,
  readConsole,
  readConsoleFile,
];
