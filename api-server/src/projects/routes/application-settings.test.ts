import { organizationNamespace, type Project, patchAutoscalingBody } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { checkAutoscaling, withAutoscaling } from "./autoscaling.ts";

/** What the settings of an application refuse before they write, and what a job is answered. The ledger is unavailable. */

let harness: FakeHarness;
let headers: Record<string, string>;

const job: Partial<Project["spec"]> = {
  type: "job",
  plan: "job-basic",
  paymentMode: "per_minute",
  exposure: undefined,
  port: undefined,
  instances: undefined,
  networkAccess: undefined,
  job: { cron: "0 0 * * *", command: ["run"] },
};
const git = { connectionId: "c", repositoryId: "r", branch: "main", autoDeploy: false };

beforeAll(async () => {
  harness = await startFakeHarness();
  headers = harness.key("acme", "* on organization:*", "* on project:*");
  await harness.project("acme", "shop");
  await harness.project("acme", "nightly", job);
  await harness.project("acme", "from-git", { image: undefined, source: git, build: {} });
  await harness.project("acme", "cache", { type: "valkey", profile: "cache" });
  const application = { image: undefined, port: undefined, exposure: undefined, subdomain: undefined };
  const database = { version: "17", instances: 1, storage: { persistent: true, capacity: 20 } };
  await harness.project("acme", "store", {
    type: "postgresql",
    plan: "db-premium",
    ...application,
    ...database,
  });
});
afterAll(() => harness.close());

const send = (method: "GET" | "POST" | "PATCH", id: string, operation: string, payload?: object | string) =>
  harness.app.inject({
    method,
    url: `/v1/project/${id}/${operation}`,
    headers: { ...headers, ...(payload === undefined ? {} : { "content-type": "application/json" }) },
    ...(payload === undefined ? {} : { payload }),
  });
const live = (id: string) =>
  harness.apiserver.etcd.get(
    "slipway.dev/v1alpha1/projects",
    `${organizationNamespace("acme")}/${id}`,
  ) as unknown as Project;

describe("an operation that does not apply to the project's type", () => {
  // Shows: docs/applications.md#project-settings: 5. schedule of a project that is no job: rejected; an
  // Shows: docs/applications.md#errors-every-operation: 400 | `PROJECT_TYPE_MISMATCH`
  // Shows: docs/jobs.md#failures: every route of runs, PATCH schedule | 400 `PROJECT_TYPE_MISMATCH`: the
  it.each([
    ["PATCH", "cache", "image", { image: "registry.example.com/shop:2" }],
    ["PATCH", "store", "image", { image: "registry.example.com/shop:2" }],
    ["PATCH", "from-git", "image", { image: "registry.example.com/shop:2" }],
    // Shows: docs/applications.md#errors-other-operations: PATCH command | 400 `PROJECT_TYPE_MISMATCH`: no
    ["PATCH", "from-git", "command", { command: ["node"] }],
    ["PATCH", "nightly", "command", { command: ["node"] }],
    // Shows: docs/applications.md#errors-other-operations: PATCH autoscaling | 400 `PROJECT_TYPE_MISMATCH`: no
    ["PATCH", "nightly", "autoscaling", { autoscaling: null }],
    ["PATCH", "store", "autoscaling", { instances: 2 }],
    ["PATCH", "nightly", "health", { termination_grace_period_seconds: 60 }],
    // Shows: docs/applications.md#errors-other-operations: PATCH sleep | 400 `PROJECT_TYPE_MISMATCH`: no
    ["PATCH", "nightly", "sleep", { sleep_after_seconds: 600 }],
    // Shows: docs/applications.md#errors-other-operations: PATCH pre-deploy | 400 `PROJECT_TYPE_MISMATCH`: no
    ["PATCH", "nightly", "pre-deploy", { pre_deploy_command: ["migrate"] }],
    ["PATCH", "store", "pre-deploy", { pre_deploy_command: ["migrate"] }],
    ["PATCH", "shop", "schedule", { cron: "* * * * *" }],
    ["PATCH", "store", "schedule", { cron: "* * * * *" }],
  ] as const)("%s %s/%s answers 400 PROJECT_TYPE_MISMATCH", async (method, id, operation, body) => {
    const response = await send(method, id, operation, body);
    expect(response.json()).toMatchObject({ status: "failed", code: "PROJECT_TYPE_MISMATCH" });
    expect(response.statusCode).toBe(400);
  });
});

describe("a body that breaks rules", () => {
  it.each([
    ["shop", "envs", undefined, ["body"]],
    ["shop", "envs", {}, ["envs"]],
    ["shop", "envs", { envs: "A=1" }, ["envs"]],
    // Shows: docs/applications.md#project-settings: envs: limits and malformed lists
    ["shop", "envs", { envs: [{ name: "A B", value: 1 }], x: 1 }, ["envs[0].name", "envs[0].value", "x"]],
    [
      "shop",
      "envs",
      {
        envs: [
          { name: "A", value: "1" },
          { name: "A", value: "2" },
        ],
      },
      ["envs"],
    ],
    [
      "shop",
      "envs",
      { envs: Array.from({ length: 51 }, (_, i) => ({ name: `N${i}`, value: "1" })) },
      ["envs"],
    ],
    ["shop", "envs", { envs: [{ name: "A", value: "x".repeat(32_761) }] }, ["envs[0].value"]],
    ["shop", "envs", '{"envs":[{"name":"A","value":"\\ud800"}]}', ["envs[0].value"]],
    ["shop", "envs", '{"envs":[{"name":"A","value":"\\u0000"}]}', ["envs[0].value"]],
    ["shop", "image", {}, ["image"]],
    ["shop", "image", { image: "https://registry.example.com/shop" }, ["image"]],
    ["shop", "image", { image: "short" }, ["image"]],
    ["shop", "image", { image: null, tag: "1" }, ["image", "tag"]],
    ["nightly", "schedule", {}, ["cron"]],
    ["nightly", "schedule", { cron: "* * * *" }, ["cron"]],
    ["nightly", "schedule", { cron: "@daily" }, ["cron"]],
    // Shows: docs/applications.md#project-settings: 5. schedule of a project that is no job: rejected
    // Shows: docs/jobs.md#failures: PATCH schedule | 400: not five fields, or a value out of range
    ["nightly", "schedule", { cron: "60 * * * *" }, ["cron"]],
    // Shows: docs/applications.md#errors-every-operation: 400 | `VALIDATION_FAILED`, with `errors`: the
    ["nightly", "schedule", { cron: 5, timezone: "UTC" }, ["cron", "timezone"]],
    ["shop", "autoscaling", {}, ["body"]],
    ["shop", "autoscaling", { instances: 0 }, ["instances"]],
    ["shop", "autoscaling", { autoscaling: { enabled: true } }, ["autoscaling.max_instances"]],
    [
      "shop",
      "autoscaling",
      { instances: 3, autoscaling: { enabled: true, max_instances: 2 } },
      ["autoscaling.max_instances"],
    ],
    ["shop", "health", {}, ["body"]],
    ["shop", "health", { healthcheck: { enabled: true } }, ["healthcheck.path"]],
    ["shop", "health", { healthcheck: { path: "/" } }, ["healthcheck.enabled"]],
    [
      "shop",
      "health",
      { healthcheck: { enabled: true, path: "/", livenessPath: "/" }, termination_grace_period_seconds: 0 },
      ["healthcheck.livenessPath", "termination_grace_period_seconds"],
    ],
    ["shop", "command", {}, ["command"]],
    ["shop", "command", { command: [] }, ["command"]],
    ["shop", "command", { command: "node worker.js" }, ["command"]],
    ["shop", "command", { command: Array(5).fill("a".repeat(1_000)) }, ["command"]],
    ["shop", "sleep", {}, ["sleep_after_seconds"]],
    ["shop", "sleep", { sleep_after_seconds: 9 }, ["sleep_after_seconds"]],
    ["shop", "sleep", { sleep_after_seconds: 604_801 }, ["sleep_after_seconds"]],
    ["shop", "pre-deploy", {}, ["body"]],
    ["shop", "pre-deploy", { pre_deploy_command: [] }, ["pre_deploy_command"]],
    ["shop", "pre-deploy", { pre_deploy_command: "npm run migrate" }, ["pre_deploy_command"]],
    [
      "shop",
      "pre-deploy",
      { pre_deploy_command: ["a"], pre_deploy_timeout_seconds: 3_601 },
      ["pre_deploy_timeout_seconds"],
    ],
    // Shows: docs/applications.md#errors-other-operations: PATCH pre-deploy | 400 `PROJECT_TYPE_MISMATCH`: no
    ["shop", "pre-deploy", { pre_deploy_timeout_seconds: 60 }, ["pre_deploy_command"]],
    ["shop", "rollback", {}, ["deployment_id"]],
    ["shop", "rollback", { deployment_id: "" }, ["deployment_id"]],
  ])("%s/%s %#", async (id, operation, body, fields) => {
    const method = operation === "rollback" ? "POST" : "PATCH";
    const response = await send(method, id, operation, body);
    expect(response.json()).toMatchObject({ status: "failed", code: "VALIDATION_FAILED" });
    expect(response.statusCode).toBe(400);
    const { errors } = response.json() as { errors: { field: string }[] };
    expect(errors.map(({ field }) => field).sort()).toEqual(fields);
  });
});

describe("PATCH health", () => {
  const health = ({ spec: { healthcheck, terminationGracePeriodSeconds } }: Project) => [
    healthcheck,
    terminationGracePeriodSeconds,
  ];

  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/health` | `message`; a new
  // Shows: docs/applications.md#project-settings: health: the whole health check, the time to stop, or
  it("replaces the health check, the time to stop, or both, and removes what is null", async () => {
    await harness.project("acme", "probed", { plan: "basic" });
    const healthcheck = {
      enabled: true,
      path: "/ready",
      liveness_path: "/live",
      startup_timeout_seconds: 90,
    };
    const spec = { enabled: true, path: "/ready", livenessPath: "/live", startupTimeoutSeconds: 90 };
    const steps: [object, unknown[]][] = [
      [{ healthcheck, termination_grace_period_seconds: 60 }, [spec, 60]],
      [{ healthcheck }, [spec, 60]],
      [{ healthcheck: { enabled: true, path: "/" } }, [{ enabled: true, path: "/" }, 60]],
      [{ termination_grace_period_seconds: null }, [{ enabled: true, path: "/" }, undefined]],
      [{ healthcheck: null }, [undefined, undefined]],
    ];
    const { healthcheck: _, ...others } = live("probed").spec;
    for (const [body, wanted] of steps) {
      const response = await send("PATCH", "probed", "health", body);
      expect(response.json()).toEqual({ status: "success", message: "health updated" });
      expect(health(live("probed"))).toEqual(wanted);
    }
    expect({ ...live("probed").spec, updatedAt: undefined }).toEqual({ ...others, updatedAt: undefined });
  });

  // Shows: docs/applications.md#errors-other-operations: PATCH health | 400 `PROJECT_TYPE_MISMATCH`: no
  it("refuses a health check that the plan lacks, and not the time to stop", async () => {
    const body = { healthcheck: { enabled: true, path: "/", liveness_path: "/" } };
    const response = await send("PATCH", "shop", "health", body);
    expect(response.json()).toMatchObject({ code: "HEALTHCHECK_NOT_AVAILABLE_FOR_PLAN" });
    expect(response.statusCode).toBe(403);
    const stop = await send("PATCH", "shop", "health", { termination_grace_period_seconds: 5 });
    expect(stop.statusCode).toBe(200);
    expect(health(live("shop"))).toEqual([undefined, 5]);
  });
});

describe("PATCH schedule", () => {
  // Shows: docs/jobs.md#endpoints: `PATCH /v1/project/:id/schedule` | `data`: `cron`, `timezone`
  it("changes when a job runs, and nothing else of it", async () => {
    const response = await send("PATCH", "nightly", "schedule", { cron: "  */5  0 * * MON-FRI " });
    expect(response.json()).toEqual({
      status: "success",
      message: expect.any(String),
      data: { cron: "*/5 0 * * MON-FRI", timezone: "UTC" },
    });
    expect(live("nightly").spec.job).toEqual({ cron: "*/5 0 * * MON-FRI", command: ["run"] });
  });
});

describe("PATCH image", () => {
  it("changes a job's image too", async () => {
    const response = await send("PATCH", "nightly", "image", { image: "registry.example.com/job:2" });
    expect(response.json()).toEqual({ status: "success", message: expect.any(String) });
    expect(live("nightly").spec.image).toEqual({ url: "registry.example.com/job:2", isPublic: true });
  });
});

describe("without a ledger", () => {
  it.each([
    // Shows: docs/applications.md#errors-other-operations: historic deployments | 503 `LEDGER_UNAVAILABLE`
    ["GET", "historic/deployments", undefined, "LEDGER_UNAVAILABLE"],
    ["POST", "rollback", { deployment_id: "d1" }, "LEDGER_UNAVAILABLE"],
    ["PATCH", "plan", { plan: "basic" }, "LEDGER_UNAVAILABLE"],
    ["PATCH", "autoscaling", { instances: 2 }, "LEDGER_UNAVAILABLE"],
  ] as const)("%s %s answers 503", async (method, operation, body, code) => {
    const response = await send(method, "shop", operation, body);
    expect([response.statusCode, response.json().code]).toEqual([503, code]);
  });

  it("resumes nothing, but pauses", async () => {
    const paused = await send("POST", "shop", "pause");
    expect([paused.statusCode, paused.json().data.project_id]).toEqual([200, "shop"]);
    expect(live("shop").spec.paused).toBe(true);
    const refused = await send("POST", "shop", "resume");
    expect([refused.statusCode, refused.json().code]).toEqual([503, "LEDGER_UNAVAILABLE"]);
    expect(live("shop").spec.paused).toBe(true);
    expect((await send("GET", "shop", "envs")).json()).toEqual({ status: "success", data: [] });
  });

  // Shows: docs/applications.md#errors-project-creation: 503 | `PROJECT_FEATURE_UNAVAILABLE`: from a Git
  // Shows: docs/databases-api.md#change-of-plan: 503 `PROJECT_FEATURE_UNAVAILABLE` for a type that is
  it("does not change the plan of a type that is not supported", async () => {
    const { supports } = harness.services;
    Object.assign(harness.services, { supports: () => false });
    const response = await send("PATCH", "store", "plan", { plan: "db-basic" });
    // What is wrong with the request itself comes first.
    const wrong = await send("PATCH", "store", "plan", { plan: "premium" });
    Object.assign(harness.services, { supports });
    expect(response.json()).toMatchObject({ code: "PROJECT_FEATURE_UNAVAILABLE" });
    expect(wrong.statusCode).toBe(400);
  });
});

describe("PATCH command", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/command` | `message`; a new deployment starts
  // Shows: docs/applications.md#project-settings: command: the whole command; null for the image's own
  it("replaces the command, and null leaves the image's own", async () => {
    await harness.project("acme", "commands", { plan: "basic" });
    for (const command of [["node", "worker.js"], ["other"], null, null]) {
      const response = await send("PATCH", "commands", "command", { command });
      expect(response.json()).toEqual({ status: "success", message: "command updated" });
      expect(live("commands").spec.command).toEqual(command ?? undefined);
    }
  });
});

describe("PATCH sleep", () => {
  const after = (id: string) => live(id).spec.sleepAfterSeconds;

  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/sleep` | `message`; no deployment
  // Shows: docs/applications.md#errors-other-operations: PATCH sleep | 400 `PROJECT_TYPE_MISMATCH`: no
  it("changes or removes the time, is refused where the plan has none, and never when it is removed", async () => {
    const plan = harness.services.catalog.current.httpPlans.find(({ plan }) => plan === "basic");
    if (plan === undefined) {
      throw new Error("no such plan");
    }
    await harness.project("acme", "sleeper", { plan: "basic" });
    const refused = await send("PATCH", "sleeper", "sleep", { sleep_after_seconds: 600 });
    expect(refused.json()).toMatchObject({ status: "failed", code: "SLEEP_NOT_AVAILABLE_FOR_PLAN" });
    expect(refused.statusCode).toBe(403);
    expect(after("sleeper")).toBeUndefined();

    plan.sleepAfterSeconds = 900;
    const { spec } = live("sleeper");
    const changed = await send("PATCH", "sleeper", "sleep", { sleep_after_seconds: 600 });
    expect(changed.json()).toEqual({ status: "success", message: "sleep updated" });
    expect(after("sleeper")).toBe(600);
    plan.sleepAfterSeconds = undefined;
    expect((await send("PATCH", "sleeper", "sleep", { sleep_after_seconds: null })).statusCode).toBe(200);
    expect({ ...live("sleeper").spec, updatedAt: undefined }).toEqual({ ...spec, updatedAt: undefined });
  });
});

describe("PATCH autoscaling", () => {
  const scaled = { enabled: true, maxInstances: 5, requestsPerSecondTarget: 50 };
  const services = (scalesByRequests = true) => ({ ...harness.services, scalesByRequests });
  const spec = (change: Partial<Project["spec"]>) => ({ ...live("shop").spec, plan: "premium", ...change });

  it.each([
    [{ autoscaling: { enabled: true, max_instances: 3 } }, { enabled: true, maxInstances: 3 }, 2],
    [{ instances: 4 }, scaled, 4],
    [{ instances: 1, autoscaling: null }, undefined, 1],
  ])("by %j replaces what it has, and nothing else", (body, autoscaling, instances) => {
    const before = spec({ instances: 2, autoscaling: scaled });
    const after = withAutoscaling(before, patchAutoscalingBody.parse(body));
    expect(after).toEqual({ ...before, autoscaling, instances });
    expect("autoscaling" in after).toBe(autoscaling !== undefined);
  });

  it("refuses more instances than the plan has, and not fewer, however many they are", () => {
    const check = (instances: number, before: number) =>
      checkAutoscaling(spec({ instances }), spec({ instances: before }), services());
    expect(() => check(6, 5)).toThrow(
      expect.objectContaining({
        status: 400,
        extra: expect.objectContaining({ errors: [expect.objectContaining({ field: "instances" })] }),
      }),
    );
    check(6, 7);
  });

  // Shows: docs/applications.md#errors-other-operations: PATCH autoscaling | 403 `AUTOSCALING_NOT_AVAILABLE
  it("refuses what the plan lacks and requests that are not counted, unless it was there before", () => {
    const before = spec({ plan: "basic", instances: 1 });
    const wanted = { ...before, autoscaling: { enabled: true, maxInstances: 1 } };
    expect(() => checkAutoscaling(wanted, before, services())).toThrow(
      expect.objectContaining({ status: 403, code: "AUTOSCALING_NOT_AVAILABLE_FOR_PLAN" }),
    );
    checkAutoscaling(before, wanted, services());
    const other = spec({ autoscaling: { ...scaled, requestsPerSecondTarget: 60 } });
    expect(() => checkAutoscaling(other, spec({ autoscaling: scaled }), services(false))).toThrow(
      expect.objectContaining({ status: 503, code: "PROJECT_FEATURE_UNAVAILABLE" }),
    );
    const fewer = spec({ autoscaling: { ...scaled, maxInstances: 4 } });
    checkAutoscaling(fewer, spec({ autoscaling: scaled }), services(false));
    const off = spec({ autoscaling: { ...scaled, enabled: false } });
    expect(() => checkAutoscaling(spec({ autoscaling: scaled }), off, services(false))).toThrow(
      expect.objectContaining({ status: 503, code: "PROJECT_FEATURE_UNAVAILABLE" }),
    );
  });

  it.each<[string, boolean, Partial<Project["spec"]>]>([
    ["more at the most", true, { autoscaling: { ...scaled, maxInstances: 6 } }],
    ["more at the least", true, { instances: 3 }],
    ["another target", true, { autoscaling: { ...scaled, cpuTargetPercentage: 70 } }],
    ["fewer", false, { instances: 1, autoscaling: { ...scaled, maxInstances: 4 } }],
    ["nothing else", false, {}],
    ["none that is enabled", false, { autoscaling: { ...scaled, enabled: false } }],
  ])(
    "where the plan has no autoscaling any more, is refused unless it only reduces: %s",
    (_, isRefused, change) => {
      const { catalog } = harness.services;
      const plans = catalog.current.httpPlans.map((plan) =>
        plan.plan === "premium"
          ? { ...plan, maxInstances: 100, capabilities: { ...plan.capabilities, autoscaling: false } }
          : plan,
      );
      const without = {
        ...services(),
        catalog: { ...catalog, current: { ...catalog.current, httpPlans: plans } },
      };
      const before = spec({ instances: 2, autoscaling: scaled });
      const check = () => checkAutoscaling({ ...before, ...change }, before, without as never);
      if (isRefused) {
        expect(check).toThrow(expect.objectContaining({ code: "AUTOSCALING_NOT_AVAILABLE_FOR_PLAN" }));
      } else {
        check();
      }
    },
  );
});

describe("PATCH pre-deploy", () => {
  const preDeploy = ({ spec: { preDeployCommand, preDeployTimeoutSeconds } }: Project) => [
    preDeployCommand,
    preDeployTimeoutSeconds,
  ];

  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/pre-deploy` | `message`; runs before
  // Shows: docs/applications.md#project-settings: pre-deploy command: the command, its time limit, or both; null
  it("replaces the command, its time limit, or both, removes what is null, and keeps what a rollback wrote", async () => {
    const preDeploySkip = { deployment: "d1", restartedAt: "2026-01-01T00:00:00Z" };
    await harness.project("acme", "migrates", { plan: "basic", preDeploySkip });
    const migrate = ["node", "migrate.js"];
    const steps: [object, unknown[]][] = [
      [{ pre_deploy_command: migrate, pre_deploy_timeout_seconds: 60 }, [migrate, 60]],
      [{ pre_deploy_command: ["other"] }, [["other"], 60]],
      [{ pre_deploy_timeout_seconds: 90 }, [["other"], 90]],
      [{ pre_deploy_timeout_seconds: null }, [["other"], undefined]],
    ];
    for (const [body, wanted] of steps) {
      const response = await send("PATCH", "migrates", "pre-deploy", body);
      expect(response.json()).toEqual({ status: "success", message: "pre-deploy command updated" });
      expect(preDeploy(live("migrates"))).toEqual(wanted);
      expect(live("migrates").spec.preDeploySkip).toEqual(preDeploySkip);
    }
    await send("PATCH", "migrates", "pre-deploy", { pre_deploy_timeout_seconds: 60 });
    await send("PATCH", "migrates", "pre-deploy", { pre_deploy_command: null });
    const { spec } = live("migrates");
    expect(preDeploy(live("migrates"))).toEqual([undefined, undefined]);
    expect(spec).not.toHaveProperty("preDeploySkip");
    expect(spec.restartedAt).toBeUndefined();
  });
});
