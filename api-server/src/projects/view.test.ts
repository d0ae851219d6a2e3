import type { Project } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { ApiProject } from "./api-project.ts";
import { projectSchema } from "./routes/schemas.ts";

const zone = "apps.localhost";
const updatedAt = "2026-01-02T00:00:00.000Z";

function shown(
  spec: Partial<Project["spec"]>,
  status?: Project["status"],
  limits?: { cpu: string; memory: string },
  may: { logs?: boolean; metrics?: boolean } = {},
): Record<string, unknown> {
  const resource: Project = {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "pshop", namespace: "slipway-org-acme", creationTimestamp: "2026-01-01T00:00:00Z" },
    spec: { ...exampleSpec, ...spec },
    ...(status === undefined ? {} : { status }),
  };
  const { data } = JSON.parse(new ApiProject(resource, { updatedAt, zone, limits }).json(may));
  expect(projectSchema.strict().safeParse(data).error).toBeUndefined();
  return data;
}

describe("the single read", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id` | the single project
  // Shows: docs/applications.md#states: `creating` | new, and nothing is wrong
  // Shows: docs/applications.md#fields-of-answers: single project | every field of the table
  // Shows: docs/applications.md#fields-of-answers: network access | items of `cidr` and `description`
  it("of a project that the operator has not observed yet has every field of the table", () => {
    expect(shown({}, undefined, { cpu: "1", memory: "512Mi" })).toEqual({
      id: "pshop",
      name: "shop-front",
      description: "",
      domain: expect.stringMatching(/^shop-front-[0-9a-f]{8}\.apps\.localhost$/),
      plan: "free",
      status: "creating",
      type_project: "http",
      exposure: "public",
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      payment_mode: "hourly",
      port: 8080,
      additional_info: { current_instances: 0, max_cpu: "1000m", max_memory: "512Mi" },
      image: { url: "registry.example.com/shop:1", is_public: true },
      custom_domains: [],
      custom_domain_setup: [],
      network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0" }], ingress_black_list: [] },
      created_at: "2026-01-01T00:00:00Z",
      updated_at: updatedAt,
    });
  });

  // Shows: docs/applications.md#fields-of-answers: single project | `additional_info`: instances that
  it("shows what is in force, not what is sold, once that is known", () => {
    const status = { phase: "running", currentInstances: 2, maxCpu: "250m", maxMemory: "256Mi" } as const;
    expect(shown({ instances: 3 }, status, { cpu: "1", memory: "1Gi" })).toMatchObject({
      status: "running",
      instances: 3,
      additional_info: { current_instances: 2, max_cpu: "250m", max_memory: "256Mi" },
    });
  });

  // Shows: docs/applications.md#fields-of-answers: single project | `domain` is the default domain
  it("of a private project has no domain, whatever an old status says", () => {
    expect(shown({ exposure: "private" }, { domain: `old.${zone}` })).not.toHaveProperty("domain");
  });

  it("shows the domain of the spec, also while another is in force", () => {
    expect(shown({ subdomain: "new" }, { domain: `old.${zone}` })).toMatchObject({ domain: `new.${zone}` });
  });

  // Shows: docs/applications.md#fields-of-answers: single project | optional fields where known
  it("shows what only some have, in snake_case", () => {
    const data = shown(
      {
        description: "Sells",
        healthcheck: { enabled: true, path: "/ready", livenessPath: "/live", startupTimeoutSeconds: 90 },
        terminationGracePeriodSeconds: 60,
        autoscaling: {
          enabled: true,
          maxInstances: 4,
          cpuTargetPercentage: 70,
          requestsPerSecondTarget: 20,
        },
        customDomains: ["www.example.com"],
      },
      {
        lastDeployment: {
          id: "d1",
          status: "failed",
          startedAt: "2026-01-02T00:00:00Z",
          message: "no image",
        },
      },
    );
    expect(data).toMatchObject({
      description: "Sells",
      healthcheck: {
        enabled: true,
        path: "/ready",
        liveness_path: "/live",
        startup_timeout_seconds: 90,
      },
      termination_grace_period_seconds: 60,
      autoscaling: {
        enabled: true,
        max_instances: 4,
        cpu_target_percentage: 70,
        requests_per_second_target: 20,
      },
      custom_domains: ["www.example.com"],
      custom_domain_setup: [{ hostname: "www.example.com", status: "pending" }],
      last_deployment: { id: "d1", status: "failed", message: "no image" },
    });
  });

  // Shows: docs/applications.md#fields-of-answers: single project | `request_scaling`
  it("shows what its requests have decided to those alone who may read its metrics", () => {
    const status = { phase: "running", requestScaling: { instances: 3, requestsPerSecond: 55 } } as const;
    const metrics = shown({}, status, undefined, { metrics: true });
    expect(metrics).toMatchObject({ request_scaling: { instances: 3, requests_per_second: 55 } });
    expect(shown({}, status, undefined, { logs: true })).not.toHaveProperty("request_scaling");
    expect(shown({}, status)).not.toHaveProperty("request_scaling");
  });

  // Shows: docs/applications.md#fields-of-answers: single project | `pre_deploy_command`, `pre_deploy_timeout_seconds`
  it("shows the pre-deploy command and what has become of it, and its lines to those who may read logs", () => {
    const spec = { ...exampleSpec, preDeployCommand: ["migrate"], preDeployTimeoutSeconds: 60 };
    const startedAt = "2026-01-02T00:00:00Z";
    const run = { startedAt, finishedAt: startedAt, exitCode: 3, lastLines: "relation exists" };
    const deployment = {
      id: "d1",
      status: "failed",
      startedAt,
      settingsHash: "h",
      updatedImage: true,
      image: { reference: "shop:2" },
      settings: { plan: "basic" },
      preDeploy: { status: "failed", commandHash: "h", ...run },
    } as const;
    const resource = {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Project",
      metadata: { name: "pshop", namespace: "slipway-org-acme", creationTimestamp: "2026-01-01T00:00:00Z" },
      spec,
      status: { deployments: [deployment], lastDeployment: { id: "d1", status: "failed", startedAt } },
    } satisfies Project;
    const project = new ApiProject(resource, { updatedAt, zone });
    const moment = "2026-01-02T00:00:00.000Z";
    const shownRun = { status: "failed", started_at: moment, finished_at: moment, exit_code: 3 };
    const { data } = JSON.parse(project.json({ logs: true }));
    expect(data).toMatchObject({ pre_deploy_command: ["migrate"], pre_deploy_timeout_seconds: 60 });
    expect(data.last_deployment.pre_deploy).toEqual({ ...shownRun, last_lines: "relation exists" });
    expect(projectSchema.strict().safeParse(data).error).toBeUndefined();
    expect(JSON.parse(project.json()).data.last_deployment.pre_deploy).toEqual(shownRun);
    const without = shown({}, { lastDeployment: { id: "d1", status: "failed", startedAt } });
    expect(without.last_deployment).not.toHaveProperty("pre_deploy");
    expect(without).not.toHaveProperty("pre_deploy_command");
  });

  // Shows: docs/applications.md#fields-of-answers: single project | `last_termination`: how the instance
  it("shows how the last instance ended, and its lines to those who may read logs", () => {
    const ended = { instance: "pshop-1", exitCode: 3, reason: "Error", restarts: 2 };
    const lastTermination = { ...ended, finishedAt: "2026-01-02T00:00:00Z", lastLines: "no database\nexits" };
    const last_termination = {
      instance: "pshop-1",
      exit_code: 3,
      reason: "Error",
      restarts: 2,
      finished_at: "2026-01-02T00:00:00.000Z",
    };
    expect(shown({}, { lastTermination }).last_termination).toEqual(last_termination);
    const resource = {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Project",
      metadata: { name: "pshop", namespace: "slipway-org-acme", creationTimestamp: "2026-01-01T00:00:00Z" },
      spec: exampleSpec,
      status: { lastTermination },
    } satisfies Project;
    const project = new ApiProject(resource, { updatedAt, zone });
    const { data } = JSON.parse(project.json({ logs: true }));
    expect(data.last_termination).toEqual({ ...last_termination, last_lines: "no database\nexits" });
    expect(projectSchema.strict().safeParse(data).error).toBeUndefined();
    expect(project.json()).not.toContain("no database");
    const without = new ApiProject({ ...resource, status: undefined }, { updatedAt, zone });
    expect(without.json({ logs: true })).toBe(without.json());
  });

  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id` | also `github`, of the legacy
  it("of the legacy kind shows its repository, and why the newest build failed", () => {
    const github = { repositoryOwner: "acme", repositoryName: "shop", branch: "main", autoDeploy: true };
    const at = "2026-01-02T00:00:00Z";
    const data = shown(
      { image: undefined, github: { ...github, buildCommand: "make" } },
      { buildFailure: { buildId: "b1", code: "BUILD_COMMAND_FAILED", message: "make failed", at } },
    );
    expect(data).toMatchObject({
      github: {
        repository_owner: "acme",
        repository_name: "shop",
        branch: "main",
        auto_deploy: true,
        version_deploy: { enabled: false, event: "tag", tag_pattern: "*", include_prereleases: false },
        build_command: "make",
        start_command: null,
        context_path: ".",
      },
      build_failure: {
        build_id: "b1",
        error_code: "BUILD_COMMAND_FAILED",
        error_message: "make failed",
        failed_at: "2026-01-02T00:00:00.000Z",
      },
    });
    expect(data).not.toHaveProperty("image");
    expect(shown({})).not.toHaveProperty("github");
    expect(shown({})).not.toHaveProperty("build_failure");
  });

  // Shows: docs/applications.md#conventions: no secret in the log or in a project
  it("names no Secret", () => {
    const data = shown({
      envsFrom: [{ name: "pshop-env-1" }],
      image: { url: "r.example.com/a:1", isPublic: false, pullSecretRef: { name: "pshop-pull-1" } },
    });
    expect(JSON.stringify(data)).not.toMatch(/pshop-(env|pull)/);
  });
});
