import type { OperationExamples } from "./example.ts";
import { EXAMPLE_ID } from "./id.ts";

const ok = (members: Record<string, unknown>): OperationExamples => ({
  responses: { 200: { status: "success", ...members } },
});

const setting = (value: unknown, members: Record<string, unknown>): OperationExamples => ({
  requests: { example: { summary: "An example", value } },
  ...ok(members),
});

const item = { id: EXAMPLE_ID, name: "hello-world", type_project: "http", plan: "basic", status: "running" };

export const projectExamples = {
  listProjects: ok({
    data: { projects: [item], pagination: { page: 1, limit: 15, total: 1, pages: 1 } },
  }),
  readProject: ok({
    data: {
      ...item,
      description: "",
      domain: "hello-world-5f0c1a2b.apps.example.com",
      exposure: "public",
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      payment_mode: "hourly",
      port: 80,
      additional_info: { current_instances: 1, max_cpu: "500m", max_memory: "512Mi" },
      image: { url: "docker.io/traefik/whoami:v1.11", is_public: true },
      network_access: {
        ingress_white_list: [{ cidr: "0.0.0.0/0", description: "Everybody" }],
        ingress_black_list: [],
      },
      created_at: "2026-11-21T08:00:00.000Z",
      updated_at: "2026-11-21T08:05:00.000Z",
    },
  }),
  deleteProject: {
    responses: {
      200: { status: "success", message: "project deleted" },
      202: {
        status: "success",
        message: "the service is being deleted",
        data: { project_id: EXAMPLE_ID, status: "deleting" },
      },
    },
  },
  readProjectLogs: ok({
    data: ["Starting up on port 80"],
    instances: [`${EXAMPLE_ID}-6c9f7d5b8-x2x9k`],
  }),
  listProjectDeployments: ok({
    data: [
      {
        id: "d-2",
        project_id: EXAMPLE_ID,
        updated_image: true,
        created_at: "2026-11-21T08:05:00.000Z",
        status: "succeeded",
        finished_at: "2026-11-21T08:05:12.000Z",
      },
    ],
    pagination: { page: 1, limit: 1_000, total: 1, pages: 1 },
  }),
  readProjectEnvs: ok({ data: [{ name: "LOG_LEVEL", value: "info" }] }),
  updateProjectEnvs: setting(
    { envs: [{ name: "LOG_LEVEL", value: "debug" }] },
    { message: "environment variables updated" },
  ),
  updateProjectImage: setting(
    { image: "docker.io/traefik/whoami:v1.10" },
    { message: "image updated, a new deployment starts" },
  ),
  updateProjectName: setting({ name: "hello-again" }, { message: "name updated" }),
  updateProjectDescription: setting(
    { description: "Says hello to everybody" },
    { message: "description updated" },
  ),
  updateProjectDomain: setting({ domain: "hello-everybody" }, { message: "domain updated" }),
  updateProjectCustomDomains: setting(
    { custom_domains: ["hello.example.com"] },
    {
      message: "custom domains updated",
      custom_domains: ["hello.example.com"],
      custom_domain_setup: [
        {
          hostname: "hello.example.com",
          status: "pending",
          ssl_status: "pending_validation",
          dns_records: [
            {
              type: "TXT",
              name: "_slipway-challenge.hello.example.com",
              value: "slipway-verification=0f3a5b7c9d1e2f405162738495a6b7c8",
            },
            { type: "CNAME", name: "hello.example.com", value: "hello-world-5f0c1a2b.apps.example.com" },
          ],
        },
      ],
    },
  ),
  updateProjectExposure: setting(
    { exposure: "private" },
    { message: "the project becomes private", exposure: "private", domain: "", custom_domains: [] },
  ),
  updateProjectPlan: {
    requests: { example: { summary: "An example", value: { plan: "premium", payment_mode: "monthly" } } },
    responses: {
      200: {
        status: "success",
        message: "plan updated",
        data: { plan: "premium", payment_mode: "monthly" },
      },
      202: {
        status: "success",
        message: "the plan changes in the background",
        data: {
          plan: "analytics-basic",
          payment_mode: "monthly",
          plan_change: {
            status: "in_progress",
            to_plan: "analytics-premium",
            started_at: "2026-11-21T08:05:00.000Z",
          },
        },
      },
    },
  },
  updateProjectSchedule: setting(
    { cron: "30 4 * * 1-5" },
    { message: "schedule updated", data: { cron: "30 4 * * 1-5", timezone: "UTC" } },
  ),
  pauseProject: ok({ message: "project paused", data: { project_id: EXAMPLE_ID, status: "stopped" } }),
  resumeProject: ok({ message: "project resumed", data: { project_id: EXAMPLE_ID, status: "resuming" } }),
  rollbackProject: setting(
    { deployment_id: "d-1" },
    { message: "a new deployment starts", data: { project_id: EXAMPLE_ID, deployment_id: "d-1" } },
  ),
} as const satisfies Record<string, OperationExamples>;
