import {
  networkRequestEvents,
  networkRoutes,
  networkSourceIps,
  networkStatusCodes,
  networkSummary,
  networkUserAgents,
} from "./analytics/routes/routes.ts";
import { createBackupRoute } from "./backups/routes/create.ts";
import { listBackupsRoute } from "./backups/routes/list.ts";
import { readBackupPolicy, updateBackupPolicy } from "./backups/routes/policy.ts";
import { readBackup } from "./backups/routes/read.ts";
import { removeBackup } from "./backups/routes/remove.ts";
import { restoreBackup } from "./backups/routes/restore.ts";
import { verifyBackup } from "./backups/routes/verify.ts";
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
import { databaseCatalog, databasePlans, httpPlans, jobPlans, storagePlans } from "./catalog/routes/plans.ts";
import { templates } from "./catalog/routes/templates.ts";
import { readConsole, readConsoleFile } from "./console/read.ts";
import { databaseConnection } from "./databases/routes/connection.ts";
import { renewDatabaseCredentials } from "./databases/routes/renew.ts";
import { updateCustomDomains, updateDomain, updateExposure } from "./domains/routes.ts";
import { listGitBranches } from "./git/routes/branches.ts";
import { createGitConnection } from "./git/routes/create.ts";
import { updateGitCredentials } from "./git/routes/credentials.ts";
import { updateGithubCommands, updateGithubDeploySettings } from "./git/routes/github.ts";
import { receiveGitHook } from "./git/routes/hook.ts";
import { listGitConnections } from "./git/routes/list.ts";
import { gitProviders } from "./git/routes/providers.ts";
import { listGitRepositories } from "./git/routes/repositories.ts";
import { resolveGitRepository } from "./git/routes/resolve.ts";
import { revokeGitConnection } from "./git/routes/revoke.ts";
import { runtimeCatalog } from "./git/routes/runtime-catalog.ts";
import type { AnyRoute } from "./http/route.ts";
import { cancelJobRun } from "./jobs/routes/cancel.ts";
import { costSummary } from "./jobs/routes/cost-summary.ts";
import { listJobRuns } from "./jobs/routes/list.ts";
import { jobRunLogs } from "./jobs/routes/logs.ts";
import { jobRunMetrics } from "./jobs/routes/metrics.ts";
import { updateSchedule } from "./jobs/routes/schedule.ts";
import { startJobRun } from "./jobs/routes/start.ts";
import { logs } from "./logs/routes/logs.ts";
import { metricsCapabilities } from "./metrics/routes/capabilities.ts";
import { projectMetrics } from "./metrics/routes/snapshot.ts";
import { docs, docsFile } from "./openapi/docs/read.ts";
import { readOpenApi } from "./openapi/routes.ts";
import { create } from "./projects/routes/create.ts";
import { deployments, rollback } from "./projects/routes/deployments.ts";
import { readEnvs, updateEnvs } from "./projects/routes/envs.ts";
import { pause, remove, resume } from "./projects/routes/lifecycle.ts";
import { updatePlan } from "./projects/routes/plan.ts";
import { list, read } from "./projects/routes/reads.ts";
import { updateDescription, updateImage, updateName } from "./projects/routes/settings.ts";
import { createRegistryToken, readRegistryToken } from "./registry/routes/token.ts";

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
  deployments,
  readEnvs,
  updateEnvs,
  updateImage,
  updatePlan,
  updateSchedule,
  pause,
  resume,
  rollback,
  remove,
  updateName,
  updateDescription,
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
  networkSummary,
  networkStatusCodes,
  networkRoutes,
  networkUserAgents,
  networkRequestEvents,
  networkSourceIps,
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
  readOpenApi(() => routes),
  docs,
  docsFile,
  readConsole,
  readConsoleFile,
];
