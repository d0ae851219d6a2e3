import { missedReasons, preDeployPhases, projectPhases, projectTypes } from "@slipway/crds";
import { z } from "zod";

/** Schemas of answers, for the OpenAPI document and the tests. */

/** The success envelope around the given members. */
export function success<Shape extends z.ZodRawShape>(members: Shape) {
  return z.object({ status: z.literal("success"), ...members });
}

/** A success without data. */
export const messageOnly = success({ message: z.string() });

/** Bytes of a body with 50 variables of 32,760 characters, each written as a six-byte JSON escape, and room for the rest. */
export const ENVIRONMENT_BODY_LIMIT = 12 * 1024 * 1024;

/** The request header, as the OpenAPI document shows it. */
export const idempotencyKeyHeader = (about: string) =>
  z
    .string()
    .regex(/^[A-Za-z0-9._-]{16,200}$/)
    .describe(about)
    .optional();

/** What pausing and resuming answer. */
export const lifecycleSchema = success({
  message: z.string(),
  data: z.object({ project_id: z.string(), status: z.enum(projectPhases) }),
});

export const pagination = z.object({
  page: z.int().min(1),
  limit: z.int().min(1),
  total: z.int().min(0),
  pages: z.int().min(0),
});

const managedService = z.object({ profile: z.enum(["key_value", "cache", "queue"]) });

export const projectItemSchema = z.object({
  id: z.string(),
  name: z.string(),
  type_project: z.enum(projectTypes),
  plan: z.string(),
  status: z.enum(projectPhases),
  managed_service: managedService.optional(),
});

export const customDomainSetupSchema = z.object({
  hostname: z.string(),
  status: z.enum(["pending", "active", "failed"]),
  ssl_status: z
    .enum(["pending_validation", "pending_issuance", "active", "failed", "disabled"])
    .describe("disabled: this platform issues no certificates."),
  dns_records: z.array(
    z.object({ type: z.enum(["TXT", "CNAME", "A", "AAAA"]), name: z.string(), value: z.string() }),
  ),
  message: z.string().describe("What is missing.").optional(),
});

/** What changes the plan of a clickhouse project, or could not. */
export const planChangeSchema = z.object({
  status: z.enum(["in_progress", "failed"]),
  from_plan: z.string().describe("Plan that the project stays on; of one that failed.").optional(),
  to_plan: z.string(),
  started_at: z.string().describe("Of one that runs.").optional(),
  finished_at: z.string().describe("Of one that failed.").optional(),
});

const networkAccessItem = z.object({ cidr: z.string(), description: z.string().optional() });

export const preDeploySchema = z
  .object({
    status: z.enum(preDeployPhases).describe("skipped: a rollback that did not ask for it."),
    started_at: z.string().optional(),
    finished_at: z.string().optional(),
    exit_code: z.int().optional(),
    last_lines: z
      .string()
      .describe("The end of its log, at most 4 KiB, where it could be read; with project.logs.read alone.")
      .optional(),
  })
  .describe("What has become of its pre-deploy command; of the newest ten deployments that had one.");

export const projectSchema = projectItemSchema.extend({
  description: z.string(),
  domain: z.string().describe("Default domain; absent for private projects.").optional(),
  exposure: z.enum(["public", "private"]).optional(),
  instances: z.int(),
  storage: z.object({ persistent: z.boolean(), capacity: z.number().describe("GB") }),
  payment_mode: z.enum(["hourly", "monthly", "yearly", "per_minute"]),
  port: z.int().optional(),
  additional_info: z.object({
    current_instances: z.int(),
    max_cpu: z.string(),
    max_memory: z.string(),
  }),
  image: z.object({ url: z.string(), is_public: z.boolean() }).optional(),
  custom_domains: z.array(z.string()).optional(),
  custom_domain_setup: z.array(customDomainSetupSchema).optional(),
  network_access: z
    .object({
      ingress_white_list: z.array(networkAccessItem),
      ingress_black_list: z.array(networkAccessItem),
    })
    .optional(),
  healthcheck: z
    .object({
      enabled: z.boolean(),
      path: z.string().optional(),
      liveness_path: z.string().optional(),
      startup_timeout_seconds: z.int().optional(),
    })
    .optional(),
  termination_grace_period_seconds: z.int().describe("30 unless given.").optional(),
  sleep_after_seconds: z
    .int()
    .describe("Seconds without a request after which no instance runs, where the plan allows it.")
    .optional(),
  paused_by: z
    .enum(["budget"])
    .describe("Of a project that a hard cap of the organization's budget has paused, and resumes.")
    .optional(),
  sleeping_since: z.string().describe("Of a project that sleeps until its next request.").optional(),
  readiness: z
    .object({ command: z.array(z.string()) })
    .describe("Of a worker whose instances are ready while a command succeeds.")
    .optional(),
  command: z
    .array(z.string())
    .describe("Runs in each instance in place of the image's own command.")
    .optional(),
  pre_deploy_command: z.array(z.string()).describe("Runs once before each deployment.").optional(),
  pre_deploy_timeout_seconds: z.int().describe("600 unless given.").optional(),
  autoscaling: z
    .object({
      enabled: z.boolean(),
      max_instances: z.int(),
      cpu_target_percentage: z.int().optional(),
      memory_target_percentage: z.int().optional(),
      requests_per_second_target: z
        .int()
        .describe("For each instance, as the ingress counts them.")
        .optional(),
    })
    .optional(),
  request_scaling: z
    .object({
      instances: z.int().describe("Instances that requests need at the least."),
      requests_per_second: z.int().describe("Requests a second at which that number was decided."),
    })
    .describe(
      "Of an application that is scaled by requests, with project.metrics.read alone: what was decided last.",
    )
    .optional(),
  database: z
    .object({
      engine: z.string().describe("What runs: the engine, or its substitute on this platform."),
      version: z.string().describe("Version that was asked for."),
      running_version: z.string().describe("Version as the server reports it.").optional(),
      storage_resizing: z.boolean().describe("Whether volumes are growing.").optional(),
    })
    .describe("Of a database or a key-value service.")
    .optional(),
  plan_change: planChangeSchema
    .describe("Of a clickhouse project: a change of its plan that runs, or the last one, if it failed.")
    .optional(),
  schedule: z
    .object({
      cron: z.string(),
      timezone: z.literal("UTC"),
      next_scheduled_at: z.string().describe("Absent while the schedule rests.").optional(),
    })
    .describe("Of a job alone.")
    .optional(),
  missed_runs: z
    .object({
      total: z.int().min(0),
      reasons: z.array(
        z.object({
          reason: z.enum(missedReasons),
          count: z.int().min(0),
          last_scheduled_at: z.string().describe("The newest of them."),
        }),
      ),
    })
    .describe("Of a job alone: occurrences of its schedule for which no container ran.")
    .optional(),
  last_deployment: z
    .object({
      id: z.string(),
      status: z.string(),
      created_at: z.string(),
      finished_at: z.string().optional(),
      message: z.string().optional(),
      pre_deploy: preDeploySchema.optional(),
    })
    .optional(),
  references: z
    .object({
      ready: z.boolean().describe("Whether every reference to another project is resolved."),
      reason: z
        .string()
        .describe("ReferencePending, ReferenceUnknown, ReferenceInvalid or ReferenceCycle, unless ready.")
        .optional(),
      message: z.string().describe("What is waited for, with the path of the reference.").optional(),
    })
    .describe("Of projects whose variables refer to other projects.")
    .optional(),
  variable_groups: z
    .object({
      ids: z.array(z.string()).describe("Variable groups that it attaches; a later one wins."),
      ready: z
        .boolean()
        .describe("Whether its instances have the newest values, or are being rolled to them."),
      reason: z
        .string()
        .describe("RolloutQueued, VariableGroupNotFound, SecretNotFound or VariablesTooLarge, unless ready.")
        .optional(),
      message: z.string().describe("What is waited for, or missing.").optional(),
    })
    .describe("Of projects that attach variable groups.")
    .optional(),
  last_termination: z
    .object({
      instance: z.string(),
      exit_code: z.int(),
      signal: z.int().optional(),
      reason: z
        .string()
        .describe(
          "LivenessFailed, StartupTimeout, OOMKilled, Error, Completed, or another that Kubernetes reports.",
        ),
      finished_at: z.string(),
      restarts: z.int().min(0).describe("Restarts of that instance so far."),
      last_lines: z
        .string()
        .describe("Its last lines, at most 2 KiB, where they are known; with project.logs.read alone.")
        .optional(),
    })
    .describe(
      "Of an HTTP project: how the instance that ended last has ended, of those that were not stopped on purpose; absent once a later deployment has succeeded.",
    )
    .optional(),
  github: z
    .object({
      repository_owner: z.string(),
      repository_name: z.string(),
      branch: z.string(),
      auto_deploy: z.boolean(),
      version_deploy: z.object({
        enabled: z.boolean(),
        event: z.enum(["tag", "release"]),
        tag_pattern: z.string(),
        include_prereleases: z.boolean(),
      }),
      runtime: z.string().nullable(),
      version: z.string().nullable(),
      start_command: z.string().nullable(),
      pre_build_command: z.string().nullable(),
      build_command: z.string().nullable(),
      context_path: z.string(),
    })
    .describe("Of a project with the legacy kind of source; see also GET /v1/project/:id/source.")
    .optional(),
  build_failure: z
    .object({
      build_id: z.string(),
      error_code: z.string().optional(),
      error_message: z.string().optional(),
      failed_at: z.string().optional(),
    })
    .describe("Why the newest build failed; absent when it did not.")
    .optional(),
  created_at: z.string(),
  updated_at: z.string(),
});

/** The failure envelope. */
export const failureSchema = z
  .object({
    status: z.literal("failed"),
    message: z.string(),
    code: z.string().describe("Stable and machine-readable; prefer it over message."),
    errors: z
      .array(z.object({ field: z.string(), message: z.string(), code: z.string().optional() }))
      .describe("Every broken rule of a request.")
      .optional(),
    limit: z.number().optional(),
    remaining: z.number().optional(),
  })
  .loose();
