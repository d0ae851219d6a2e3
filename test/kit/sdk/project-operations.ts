import { absent, type Operation, type OperationId, on, type Subjects } from "./operation.ts";

const envs = [{ name: "LOG_LEVEL", value: "debug" }];
const lines = { q: "error" };
const network = ({ app }: Subjects) => ({
  params: { path: { id: app }, query: { range_seconds: "3600" as const } },
});
const noStore = "503 ANALYTICS_NOT_CONFIGURED";
const backup = ({ database: id }: Subjects) => ({ params: { path: { id, backupId: absent.backup } } });
const run = (id: string) => ({ params: { path: { id, runId: absent.run } } });

/** Operations on projects of every type, in an order in which their calls are possible. */
export const projectOperations = {
  listHttpPlans: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/project/plans") },
  listJobPlans: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/project/job/plans") },
  listStoragePlans: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/project/storage/plans") },
  listDatabasePlans: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/project/database/plans") },
  listDatabaseCatalog: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/project/database/catalog") },
  listTemplates: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/project/templates") },
  createProject: {
    answer: "201",
    call: ({ slipway }) =>
      slipway.POST("/v1/project", {
        params: { header: { "idempotency-key": "operations-of-the-sdk" } },
        body: {
          name: "made-by-sdk",
          plan: "free",
          payment_mode: "hourly",
          config: {
            type_project: "http",
            exposure: "private",
            image: { url: "registry.example.com/shop:1", is_public: true },
            port: 8080,
            instances: 1,
            storage: { persistent: false, capacity: 1 },
            envs,
            network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0" }] },
          },
        },
      }),
  },
  listProjects: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/project") },
  readProject: { answer: "200", call: ({ slipway, app }) => slipway.GET("/v1/project/{id}", on(app)) },
  readProjectLogs: {
    answer: "200",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/logs", on(app)),
  },
  execInstance: {
    answer: "403 PERMISSION_DENIED",
    call: ({ slipway, app: id }) =>
      slipway.GET("/v1/project/{id}/instances/{instance}/exec", {
        params: { path: { id, instance: "papp-1" }, query: { command: ["sh"] } },
      }),
  },
  searchProjectLogs: {
    answer: noStore,
    call: ({ slipway, app: id }) =>
      slipway.GET("/v1/project/{id}/logs/search", { params: { path: { id }, query: lines } }),
  },
  listProjectDeployments: {
    answer: "200",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/historic/deployments", on(app)),
  },
  readProjectEnvs: {
    answer: "200",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/envs", on(app)),
  },
  updateProjectEnvs: {
    answer: "200",
    call: ({ slipway, app }) => slipway.PATCH("/v1/project/{id}/envs", { ...on(app), body: { envs } }),
  },
  updateProjectImage: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/image", { ...on(app), body: { image: "registry.example.com/shop:2" } }),
  },
  updateProjectVariableGroups: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/variable-groups", { ...on(app), body: { variable_group_ids: [] } }),
  },
  updateProjectPlan: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/plan", {
        ...on(app),
        body: { plan: "premium", payment_mode: "monthly" },
      }),
  },
  updateProjectSchedule: {
    answer: "200",
    call: ({ slipway, job }) =>
      slipway.PATCH("/v1/project/{id}/schedule", { ...on(job), body: { cron: "30 4 * * 1-5" } }),
  },
  updateProjectName: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/name", { ...on(app), body: { name: "hello-again" } }),
  },
  updateProjectDescription: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/description", { ...on(app), body: { description: "Says hello" } }),
  },
  updateProjectHealth: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/health", {
        ...on(app),
        body: { healthcheck: { enabled: true, path: "/healthz" } },
      }),
  },
  updateProjectCommand: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/command", { ...on(app), body: { command: ["node", "worker.js"] } }),
  },
  updateProjectAutoscaling: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/autoscaling", { ...on(app), body: { instances: 2 } }),
  },
  updateProjectPreDeploy: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/pre-deploy", {
        ...on(app),
        body: { pre_deploy_command: ["node", "migrate.js"] },
      }),
  },
  updateProjectSleep: {
    answer: "403 SLEEP_NOT_AVAILABLE_FOR_PLAN",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/sleep", { ...on(app), body: { sleep_after_seconds: 3600 } }),
  },
  updateProjectDomain: {
    answer: "503 DOMAIN_RELEASE_PENDING",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/domain", { ...on(app), body: { domain: "hello-everybody" } }),
  },
  updateProjectCustomDomains: {
    answer: "503 DOMAIN_RELEASE_PENDING",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/custom-domains", {
        ...on(app),
        body: { custom_domains: ["hello.example.com"] },
      }),
  },
  updateProjectExposure: {
    answer: "503 DOMAIN_RELEASE_PENDING",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/exposure", { ...on(app), body: { exposure: "private" } }),
  },
  readDatabaseConnection: {
    answer: "200",
    call: ({ slipway, database }) => slipway.GET("/v1/project/{id}/database/connection", on(database)),
  },
  renewDatabaseCredentials: {
    answer: "503 DATABASE_CREDENTIALS_PENDING",
    call: ({ slipway, database }) =>
      slipway.POST("/v1/project/{id}/database/credentials/renew", { ...on(database), body: {} }),
  },
  listBackups: {
    answer: "200",
    call: ({ slipway, database }) => slipway.GET("/v1/project/{id}/backups", on(database)),
  },
  createBackup: {
    answer: "202",
    call: ({ slipway, database }) =>
      slipway.POST("/v1/project/{id}/backups", { ...on(database), body: { retention_days: 30 } }),
  },
  readBackupPolicy: {
    answer: "200",
    call: ({ slipway, database }) => slipway.GET("/v1/project/{id}/backups/policy", on(database)),
  },
  updateBackupPolicy: {
    answer: "200",
    call: ({ slipway, database }) =>
      slipway.PUT("/v1/project/{id}/backups/policy", {
        ...on(database),
        body: { schedule: "0 3 * * 0", retention_days: 35 },
      }),
  },
  readBackup: {
    answer: "404 BACKUP_NOT_FOUND",
    call: (all) => all.slipway.GET("/v1/project/{id}/backups/{backupId}", backup(all)),
  },
  verifyBackup: {
    answer: "404 BACKUP_NOT_FOUND",
    call: (all) => all.slipway.POST("/v1/project/{id}/backups/{backupId}/verify", backup(all)),
  },
  restoreBackup: {
    answer: "404 BACKUP_NOT_FOUND",
    call: (all) =>
      all.slipway.POST("/v1/project/{id}/backups/{backupId}/restore", {
        ...backup(all),
        body: { name: "shop-restored" },
      }),
  },
  deleteBackup: {
    answer: "404 BACKUP_NOT_FOUND",
    call: (all) => all.slipway.DELETE("/v1/project/{id}/backups/{backupId}", backup(all)),
  },
  readProjectMetrics: {
    answer: noStore,
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/metrics", on(app)),
  },
  readMetricsCapabilities: {
    answer: "200",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/metrics/capabilities", on(app)),
  },
  readProjectAlerts: {
    answer: "200",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/alerts", on(app)),
  },
  updateProjectAlerts: {
    answer: "200",
    call: ({ slipway, app }) =>
      slipway.PUT("/v1/project/{id}/alerts", {
        ...on(app),
        body: { alerts: [{ metric: "failed_deployment" }] },
      }),
  },
  readNetworkSummary: {
    answer: noStore,
    call: (all) => all.slipway.GET("/v1/project/{id}/metrics/network/summary", network(all)),
  },
  listNetworkStatusCodes: {
    answer: noStore,
    call: (all) => all.slipway.GET("/v1/project/{id}/metrics/network/status-codes", network(all)),
  },
  listNetworkRoutes: {
    answer: noStore,
    call: (all) => all.slipway.GET("/v1/project/{id}/metrics/network/routes", network(all)),
  },
  listNetworkUserAgents: {
    answer: noStore,
    call: (all) => all.slipway.GET("/v1/project/{id}/metrics/network/user-agents", network(all)),
  },
  listNetworkRequestEvents: {
    answer: noStore,
    call: (all) => all.slipway.GET("/v1/project/{id}/metrics/network/request-events", network(all)),
  },
  listNetworkSourceIps: {
    answer: noStore,
    call: (all) => all.slipway.GET("/v1/project/{id}/metrics/network/source-ips", network(all)),
  },
  readProjectCost: {
    answer: "200",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/cost", on(app)),
  },
  listJobRuns: {
    answer: "200",
    call: ({ slipway, job }) => slipway.GET("/v1/project/{id}/job-runs", on(job)),
  },
  readJobCostSummary: {
    answer: "200",
    call: ({ slipway, job }) => slipway.GET("/v1/project/{id}/job-runs/cost-summary", on(job)),
  },
  startJobRun: {
    answer: "503 OPERATOR_UNAVAILABLE",
    call: ({ slipway, job }) => slipway.POST("/v1/project/{id}/job-runs", on(job)),
  },
  cancelJobRun: {
    answer: "404 JOB_RUN_NOT_FOUND",
    call: ({ slipway, job }) => slipway.POST("/v1/project/{id}/job-runs/{runId}/cancel", run(job)),
  },
  readJobRunLogs: {
    answer: "404 JOB_RUN_NOT_FOUND",
    call: ({ slipway, job }) => slipway.GET("/v1/project/{id}/job-runs/{runId}/logs", run(job)),
  },
  readJobRunMetrics: {
    answer: "404 JOB_RUN_NOT_FOUND",
    call: ({ slipway, job }) => slipway.GET("/v1/project/{id}/job-runs/{runId}/metrics", run(job)),
  },
  listRuns: { answer: "200", call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/runs", on(app)) },
  startRun: {
    answer: "409 PROJECT_NOT_DEPLOYED",
    call: ({ slipway, app }) =>
      slipway.POST("/v1/project/{id}/runs", { ...on(app), body: { command: ["node", "migrate.js"] } }),
  },
  readRunCostSummary: {
    answer: "200",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/runs/cost-summary", on(app)),
  },
  readRun: {
    answer: "404 JOB_RUN_NOT_FOUND",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/runs/{runId}", run(app)),
  },
  cancelRun: {
    answer: "404 JOB_RUN_NOT_FOUND",
    call: ({ slipway, app }) => slipway.POST("/v1/project/{id}/runs/{runId}/cancel", run(app)),
  },
  readRunLogs: {
    answer: "404 JOB_RUN_NOT_FOUND",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/runs/{runId}/logs", run(app)),
  },
  rollbackProject: {
    answer: "404 DEPLOYMENT_NOT_FOUND",
    call: ({ slipway, app }) =>
      slipway.POST("/v1/project/{id}/rollback", { ...on(app), body: { deployment_id: "d-1" } }),
  },
  pauseProject: {
    answer: "200",
    call: ({ slipway, app }) => slipway.POST("/v1/project/{id}/pause", on(app)),
  },
  resumeProject: {
    answer: "200",
    call: ({ slipway, app }) => slipway.POST("/v1/project/{id}/resume", on(app)),
  },
  listDeletedProjects: {
    answer: "200",
    call: ({ slipway }) => slipway.GET("/v1/organization/deleted-projects"),
  },
  undeleteProject: {
    answer: "404 DELETED_PROJECT_NOT_FOUND",
    call: ({ slipway }) => slipway.POST("/v1/project/{id}/undelete", on("pabsent")),
  },
} as const satisfies Partial<Record<OperationId, Operation>>;
