import type { AnyRoute } from "../http/route.ts";
import { readConsole, readConsoleFile } from "./console/read.ts";
import { docs, docsFile } from "./docs/read.ts";
import { createRegistryToken, readRegistryToken } from "./registry/token.ts";
import { createBackupRoute } from "./v1/backup/create.ts";
import { listBackupsRoute } from "./v1/backup/list.ts";
import { readBackupPolicy, updateBackupPolicy } from "./v1/backup/policy.ts";
import { readBackup } from "./v1/backup/read.ts";
import { removeBackup } from "./v1/backup/remove.ts";
import { restoreBackup } from "./v1/backup/restore.ts";
import { verifyBackup } from "./v1/backup/verify.ts";
import { deploy, githubDeploy } from "./v1/build/deploy.ts";
import {
  listBuilds,
  listGithubBuilds,
  readBuild,
  readBuildLogs,
  readGithubBuild,
  readGithubBuildLogs,
} from "./v1/build/routes.ts";
import { databaseCatalog, databasePlans, httpPlans, jobPlans, storagePlans } from "./v1/catalog/plans.ts";
import { databaseConnection } from "./v1/database/connection.ts";
import { renewDatabaseCredentials } from "./v1/database/renew.ts";
import { listGitBranches } from "./v1/git/branches.ts";
import { createGitConnection } from "./v1/git/create.ts";
import { updateGitCredentials } from "./v1/git/credentials.ts";
import { receiveGitHook } from "./v1/git/hook.ts";
import { listGitConnections } from "./v1/git/list.ts";
import { gitProviders } from "./v1/git/providers.ts";
import { listGitRepositories } from "./v1/git/repositories.ts";
import { resolveGitRepository } from "./v1/git/resolve.ts";
import { revokeGitConnection } from "./v1/git/revoke.ts";
import { runtimeCatalog } from "./v1/git/runtime-catalog.ts";
import { updateGithubCommands, updateGithubDeploySettings } from "./v1/github/routes.ts";
import { cancelJobRun } from "./v1/job-run/cancel.ts";
import { costSummary } from "./v1/job-run/cost-summary.ts";
import { listJobRuns } from "./v1/job-run/list.ts";
import { jobRunLogs } from "./v1/job-run/logs.ts";
import { jobRunMetrics } from "./v1/job-run/metrics.ts";
import { startJobRun } from "./v1/job-run/start.ts";
import { metricsCapabilities } from "./v1/metrics/capabilities.ts";
import { projectMetrics } from "./v1/metrics/snapshot.ts";
import {
  networkRequestEvents,
  networkRoutes,
  networkSourceIps,
  networkStatusCodes,
  networkSummary,
  networkUserAgents,
} from "./v1/network/routes.ts";
import { readOpenApi } from "./v1/openapi/read.ts";
import { create } from "./v1/project/create.ts";
import { updateCustomDomains } from "./v1/project/custom-domains.ts";
import { deployments } from "./v1/project/deployments.ts";
import { updateDescription } from "./v1/project/description.ts";
import { updateDomain } from "./v1/project/domain.ts";
import { updateExposure } from "./v1/project/exposure.ts";
import { updateImage } from "./v1/project/image.ts";
import { list } from "./v1/project/list.ts";
import { logs } from "./v1/project/logs.ts";
import { updateName } from "./v1/project/name.ts";
import { pause } from "./v1/project/pause.ts";
import { updatePlan } from "./v1/project/plan.ts";
import { read } from "./v1/project/read.ts";
import { readEnvs } from "./v1/project/read-envs.ts";
import { remove } from "./v1/project/remove.ts";
import { resume } from "./v1/project/resume.ts";
import { rollback } from "./v1/project/rollback.ts";
import { updateSchedule } from "./v1/project/schedule.ts";
import { updateEnvs } from "./v1/project/update-envs.ts";
import {
  listSourceBranches,
  readSource,
  removeSource,
  updateBuildSettings,
  updateSource,
} from "./v1/source/routes.ts";
import { templates } from "./v1/template/list.ts";

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
