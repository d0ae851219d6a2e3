import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { jobRunName, organizationNamespace, type Project } from "@slipway/crds";
import {
  listQuotaReservations,
  setOrganizationBlocked,
  setPlanCapacity,
  storeJobRunLog,
} from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleBody, exampleJobBody } from "../../../test/kit/api-server/harness.ts";
import { condition, runResource } from "../../../test/kit/api-server/job-runs.ts";
import {
  type Answer,
  createJob,
  type Job,
  postProject,
  refusalOf,
} from "../../../test/kit/api-server/jobs.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { projectResource } from "../resources.ts";
import { closeJob } from "./before-deletion.ts";

/** Jobs over a real apiserver and a real PostgreSQL: how they are created, changed and deleted. Tests act as the operator. */

let harness: RealHarness;
beforeAll(async () => {
  const node = { build: "base/node:24", run: "base/node:24" };
  harness = await startRealHarness({ baseImages: { node: { "24": node } } });
});
afterAll(() => harness?.close());

const post = (headers: Record<string, string>, body: object, key?: string) =>
  postProject(harness, headers, body, key);

describe("the creation of a job", () => {
  // Shows: docs/jobs.md#creation: `config.job.cron`: exactly five fields in UTC; no seconds, macros
  // Shows: docs/jobs.md#creation: `config.job.command`, `config.job.args`: optional lists of strings
  // Shows: docs/jobs.md#creation: `config.storage`: `dir_path_to_persist` when persistent
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: the single project has `payment_mode`
  it("from an image creates a Project, and answers what a read then shows", async () => {
    const job = await createJob(
      harness,
      { plan: "job-premium", description: "Sends reports" },
      {
        job: { cron: " */5  0 * * MON-FRI ", command: ["/bin/report"], args: ["--all", "$(NOT_EXPANDED)"] },
        storage: { persistent: true, capacity: 3, dir_path_to_persist: "/var/reports" },
        envs: [{ name: "LEVEL", value: "info" }],
      },
    );
    const live = await job.actor.project(job.organizationId, job.id);
    expect(live.spec).toMatchObject({
      type: "job",
      plan: "job-premium",
      paymentMode: "per_minute",
      job: { cron: "*/5 0 * * MON-FRI", command: ["/bin/report"], args: ["--all", "$(NOT_EXPANDED)"] },
      storage: { persistent: true, capacity: 3, dirPathToPersist: "/var/reports" },
      envsFrom: [{ name: expect.stringMatching(/-env-/) }],
    });
    const { data } = (await job.send("GET")).json();
    expect(data).toMatchObject({
      id: job.id,
      type_project: "job",
      plan: "job-premium",
      status: "creating",
      payment_mode: "per_minute",
      storage: { persistent: true, capacity: 3 },
      schedule: { cron: "*/5 0 * * MON-FRI", timezone: "UTC" },
      missed_runs: { total: 0, reasons: [] },
    });
    for (const field of ["domain", "port", "exposure", "custom_domains", "network_access"]) {
      expect(data).not.toHaveProperty(field);
    }
    const listed = await harness.app.inject({ url: "/v1/project?type=job", headers: job.headers });
    expect(listed.json().data.projects).toMatchObject([{ id: job.id, type_project: "job" }]);
  });

  // Shows: docs/jobs.md#creation: 201, `data`: `project_id`, `type` `job`; no domain
  // Shows: docs/jobs.md#creation: `Idempotency-Key`: optional, 16 to 200 characters; the same request
  // Shows: docs/jobs.md#failures: create | 409 `IDEMPOTENCY_KEY_CONFLICT`
  it("answers its id and its type alone, once per Idempotency-Key, which it does not need", async () => {
    const { headers } = await harness.organization();
    const key = "job-0123456789-key";
    const first = await post(headers, exampleJobBody(), key);
    expect(first.json()).toEqual({
      status: "success",
      message: expect.any(String),
      data: { project_id: expect.stringMatching(/^p[a-z0-9]{19}$/), type: "job" },
    });
    expect(first.statusCode).toBe(201);
    expect((await post(headers, exampleJobBody(), key)).json()).toEqual(first.json());
    expect(await refusalOf(post(headers, exampleJobBody({ name: "another" }), key))).toEqual([
      409,
      "IDEMPOTENCY_KEY_CONFLICT",
    ]);
    expect(await refusalOf(post(headers, exampleJobBody(), "fifteen-letters"))).toEqual([
      400,
      "VALIDATION_FAILED",
    ]);
  });

  // Shows: docs/jobs.md#creation: `payment_mode` is `per_minute`, else 400
  it.each(["hourly", "monthly", "yearly", "weekly"])(
    "paid %s is SCHEDULED_JOB_PAYMENT_MODE_INVALID",
    async (mode) => {
      const { headers } = await harness.organization();
      const refused = post(headers, exampleJobBody({ payment_mode: mode }));
      expect(await refusalOf(refused)).toEqual([400, "SCHEDULED_JOB_PAYMENT_MODE_INVALID"]);
    },
  );

  const broken: [string, object, Record<string, unknown>][] = [
    ["plan", { plan: "basic" }, {}],
    ["plan", { plan: "job-none" }, {}],
    ["config.port", {}, { port: 8080 }],
    ["config.exposure", {}, { exposure: "public" }],
    ["config.instances", {}, { instances: 1 }],
    ["config.subdomain", {}, { subdomain: "nightly" }],
    ["config.custom_domains", {}, { custom_domains: [] }],
    ["config.autoscaling", {}, { autoscaling: { enabled: true, max_instances: 2 } }],
    ["config.healthcheck", {}, { healthcheck: { enabled: true, path: "/" } }],
    ["config.network_access", {}, { network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0" }] } }],
    ["config.image", {}, { image: undefined }],
    ["config.job", {}, { job: undefined }],
    ["config.job.closed_at", {}, { job: { cron: "* * * * *", closed_at: "2026-01-01T00:00:00Z" } }],
    ["config.job.command", {}, { job: { cron: "* * * * *", command: "date" } }],
    ["config.job.args[0]", {}, { job: { cron: "* * * * *", args: [1] } }],
    ["config.storage.dir_path_to_persist", {}, { storage: { persistent: true, capacity: 1 } }],
    ["config.storage.capacity", {}, { storage: { persistent: false, capacity: 251 } }],
    ...["* * * *", "* * * * * *", "@daily", "H * * * *", "0 0 L * *", "0 0 * * 1#2", "60 * * * *", ""].map(
      (cron): [string, object, Record<string, unknown>] => ["config.job.cron", {}, { job: { cron } }],
    ),
  ];
  // Shows: docs/jobs.md#creation: `plan` begins with `job-`; another plan, or one that is not sold, is
  // Shows: docs/jobs.md#creation: `config.job.cron`: exactly five fields in UTC; no seconds, macros
  // Shows: docs/jobs.md#creation: `config.job.command`, `config.job.args`: optional lists of strings
  // Shows: docs/jobs.md#creation: `config.storage`: `dir_path_to_persist` when persistent
  // Shows: docs/jobs.md#creation: no `port`, `domain`, `exposure`, `instances`, `autoscaling`: 400
  it.each(broken)("with a broken %s is 400, case %#", async (field, change, config) => {
    const { headers } = await harness.organization();
    const refused = await post(headers, exampleJobBody({ ...change }, config));
    expect(refused.json().errors?.map((error: { field: string }) => error.field)).toContain(field);
    expect(refused.statusCode).toBe(400);
  });

  // Shows: docs/jobs.md#creation: exactly one of `config.image` and `config.github`; private images by
  it("takes credentials of a private registry, AWS's too, and keeps them out of the spec", async () => {
    const url = "123456789012.dkr.ecr.sa-east-1.amazonaws.com/report:1";
    const aws = {
      access_key_id: "AKIAIOSFODNN7EXAMPLE",
      secret_access_key: "wJalrXUtnFEMI-not-a-real-one",
      region: "sa-east-1",
      account_id: "123456789012",
    };
    const login = { auth_type: "username_password", username: "robot", token: "p4ssw0rd" };
    const byAws = await createJob(
      harness,
      {},
      {
        image: { url, is_public: false, authentication: { auth_type: "aws", aws } },
      },
    );
    const byLogin = await createJob(
      harness,
      {},
      {
        image: { url: "registry.example.com/report:1", is_public: false, authentication: login },
      },
    );
    const specs = await Promise.all(
      [byAws, byLogin].map(async (job) => (await job.actor.project(job.organizationId, job.id)).spec),
    );
    expect(specs[0]?.image).toMatchObject({ awsCredentialsRef: { name: expect.any(String) } });
    expect(specs[1]?.image).toMatchObject({ pullSecretRef: { name: expect.any(String) } });
    expect(JSON.stringify(specs)).not.toMatch(/p4ssw0rd|wJalrXUt/);
    const secrets = await harness.admin.listAll<KubernetesObject & { type?: string }>(resources.secrets, {
      namespace: organizationNamespace(byLogin.organizationId),
    });
    expect(secrets.map(({ type }) => type)).toEqual(["kubernetes.io/dockerconfigjson"]);
  });

  // Shows: docs/jobs.md#creation: from a template
  it("from a template merges both, with precedence for the request's own schedule", async () => {
    const { id: organizationId, headers } = await harness.organization();
    const body = { template_id: "nightly-task", template_revision: 1, name: "from-template" };
    const created = await post(headers, body);
    expect(created.statusCode).toBe(201);
    expect(created.json().data.type).toBe("job");
    const own = await post(headers, { ...body, config: { job: { cron: "1 2 3 4 5" } } });
    const { items } = { items: harness.projects.list(organizationId) };
    expect(items.map(({ resource: { spec } }) => spec.job?.cron).sort()).toEqual(["0 3 * * *", "1 2 3 4 5"]);
    expect(own.statusCode).toBe(201);
  });

  // Shows: docs/jobs.md#failures: create | 402 `ORGANIZATION_BLOCKED`, `BUDGET_EXHAUSTED`; 409 `INSUFFICIENT_PLAN_CAPACITY`
  it("is refused in an organization that is blocked, over a plan's capacity, and while there are no jobs", async () => {
    const { id, headers } = await harness.organization();
    await setOrganizationBlocked(harness.ledger, id, true);
    expect(await refusalOf(post(headers, exampleJobBody()))).toEqual([402, "ORGANIZATION_BLOCKED"]);
    await setOrganizationBlocked(harness.ledger, id, false);

    await setPlanCapacity(harness.ledger, "job-business", 1);
    const body = exampleJobBody({ plan: "job-business" });
    expect((await post(headers, body)).statusCode).toBe(201);
    expect(await refusalOf(post(headers, body))).toEqual([409, "INSUFFICIENT_PLAN_CAPACITY"]);

    const { current } = harness.services.catalog;
    Object.assign(harness.services, { catalog: { current: { ...current, jobsEnabled: false } } });
    const disabled = await refusalOf(post(headers, exampleJobBody()));
    Object.assign(harness.services, { catalog: { current } });
    expect(disabled).toEqual([503, "SCHEDULED_JOBS_UNAVAILABLE"]);
  });

  // Shows: docs/jobs.md#creation: exactly one of `config.image` and `config.github`; private images by
  // Shows: docs/jobs.md#creation: from a Git repository, of an account of GitHub that is connected with
  // Shows: docs/jobs.md#failures: create | 409 `GIT_CONNECTION_UNAVAILABLE`: from a Git repository
  it("from a Git repository is checked in full, then 409 without a GitHub account", async () => {
    const { headers } = await harness.organization();
    const github = {
      repository_owner: "acme",
      repository_name: "report",
      branch: "main",
      auto_deploy: true,
      runtime: "node",
      version: "24",
      start_command: "node report.js",
      pre_build_command: null,
      build_command: "npm ci",
    };
    const from = (change: object) =>
      exampleJobBody({}, { image: undefined, github: { ...github, ...change } });
    expect(await refusalOf(post(headers, from({ branch: undefined })))).toEqual([400, "VALIDATION_FAILED"]);
    expect(await refusalOf(post(headers, from({ runtime: "cobol" })))).toEqual([400, "VALIDATION_FAILED"]);
    expect(await refusalOf(post(headers, from({})))).toEqual([409, "GIT_CONNECTION_UNAVAILABLE"]);
    const both = exampleJobBody({}, { github });
    expect(await refusalOf(post(headers, both))).toEqual([400, "VALIDATION_FAILED"]);
  });

  // Shows: docs/applications.md#authentication: create HTTP application, worker or job |
  // Shows: docs/jobs.md#failures: create | 403: another scope than `project.create`
  it("needs project.create, and nothing of databases", async () => {
    const { id } = await harness.organization();
    const databases = harness.key(id, "database.create on organization:*");
    expect(await refusalOf(post(databases, exampleJobBody()))).toEqual([403, "PERMISSION_DENIED"]);
    const projects = harness.key(id, "project.create on organization:*");
    expect((await post(projects, exampleJobBody())).statusCode).toBe(201);
  });
});

describe("the settings of a job", () => {
  // Shows: docs/jobs.md#endpoints: `PATCH /v1/project/:id/schedule` | `data`: `cron`, `timezone`
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: name, description, envs, image, plan and schedule
  // Shows: docs/jobs.md#failures: PATCH plan | 400: no plan of jobs, or
  it("that fit it change, and the read shows it", async () => {
    const job = await createJob(harness, { description: "Old" });
    const changes: [string, object][] = [
      ["name", { name: "renamed-job" }],
      ["description", { description: "New" }],
      ["envs", { envs: [{ name: "A", value: "1" }] }],
      ["image", { image: "registry.example.com/report:2" }],
      ["plan", { plan: "job-premium" }],
      ["schedule", { cron: "30 4 * * 1-5" }],
    ];
    for (const [setting, body] of changes) {
      const changed = await job.send("PATCH", setting, body);
      expect(`${setting}: ${changed.body}`).toContain('"success"');
      expect(changed.statusCode).toBe(200);
    }
    expect((await job.send("GET", "envs")).json().data).toEqual([{ name: "A", value: "1" }]);
    expect((await job.send("GET")).json().data).toMatchObject({
      name: "renamed-job",
      description: "New",
      plan: "job-premium",
      image: { url: "registry.example.com/report:2" },
      schedule: { cron: "30 4 * * 1-5", timezone: "UTC" },
    });
    expect(await refusalOf(job.send("PATCH", "plan", { plan: "basic" }))).toEqual([400, "VALIDATION_FAILED"]);
    expect(await refusalOf(job.send("PATCH", "plan", { plan: "job-basic", payment_mode: "hourly" }))).toEqual(
      [400, "SCHEDULED_JOB_PAYMENT_MODE_INVALID"],
    );
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: name, description, envs, image, plan and schedule
  it("pause and resume it; its quota is released meanwhile", async () => {
    const job = await createJob(harness);
    const reservations = () => listQuotaReservations(harness.ledger);
    const isReserved = async () => (await reservations()).some(({ project_id }) => project_id === job.id);
    expect(await isReserved()).toBe(true);
    expect((await job.send("POST", "pause")).json().data.project_id).toBe(job.id);
    expect((await job.actor.project(job.organizationId, job.id)).spec.paused).toBe(true);
    expect(await isReserved()).toBe(false);
    expect((await job.send("POST", "resume")).statusCode).toBe(200);
    expect(await isReserved()).toBe(true);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: name, description, envs, image, plan and schedule
  it("have deployments, logs and a rollback as those of an application", async () => {
    const job = await createJob(harness);
    expect((await job.send("GET", "historic/deployments")).json().data).toEqual([]);
    expect((await job.send("GET", "logs")).json()).toEqual({ status: "success", data: [], instances: [] });
    expect(await refusalOf(job.send("POST", "rollback", { deployment_id: "d-1" }))).toEqual([
      404,
      "DEPLOYMENT_NOT_FOUND",
    ]);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: the application's log is that of the active run
  it("have the lines of its last run between its runs, in the cycle of that run", async () => {
    const job = await createJob(harness);
    const startedAt = new Date();
    const name = jobRunName(job.id, startedAt);
    const log = { organization_id: job.organizationId, project_id: job.id, id: name };
    await storeJobRunLog(harness.ledger, { ...log, scheduled_at: startedAt }, "one\n\nthree\n");
    const shown = async () => (await job.send("GET", "logs")).json().data;
    const lastRun = { name, phase: "succeeded", startedAt: startedAt.toISOString() };
    await job.actor.patchProjectStatus(job.organizationId, job.id, { lastRun });
    await expect.poll(shown).toEqual(["one", "", "three"]);
    const earlier = { ...lastRun, startedAt: "2020-01-01T00:00:00Z" };
    await job.actor.patchProjectStatus(job.organizationId, job.id, { lastRun: earlier });
    await expect.poll(shown).toEqual([]);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: domain, custom domains and exposure are 400 for a
  it.each([
    ["PATCH", "domain", { domain: "nightly" }],
    ["PATCH", "custom-domains", { custom_domains: [] }],
    ["PATCH", "exposure", { exposure: "private" }],
  ] as const)("%s %s is not one of them: PROJECT_TYPE_MISMATCH", async (method, operation, body) => {
    const job = await createJob(harness);
    expect(await refusalOf(job.send(method, operation, body))).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: the single project has `payment_mode`
  it("report what was missed, and when the next run is due", async () => {
    const job = await createJob(harness);
    await job.actor.patchProjectStatus(job.organizationId, job.id, {
      nextScheduledAt: "2026-02-01T00:05:00Z",
      missed: 3,
      missedReasons: [
        { reason: "Overlap", count: 2, lastScheduledAt: "2026-02-01T00:00:00Z" },
        { reason: "OperatorUnavailable", count: 1, lastScheduledAt: "2026-01-31T23:00:00Z" },
      ],
    });
    await expect
      .poll(async () => (await job.send("GET")).json().data.missed_runs)
      .toEqual({
        total: 3,
        reasons: [
          { reason: "Overlap", count: 2, last_scheduled_at: "2026-02-01T00:00:00.000Z" },
          { reason: "OperatorUnavailable", count: 1, last_scheduled_at: "2026-01-31T23:00:00.000Z" },
        ],
      });
    const next = async () => (await job.send("GET")).json().data.schedule.next_scheduled_at;
    expect(await next()).toBe("2026-02-01T00:05:00.000Z");
    await job.send("POST", "pause");
    expect(await next()).toBeUndefined();
  });
});

describe("the routes of runs", () => {
  // Shows: docs/jobs.md#failures: every route of runs, PATCH schedule | 400 `PROJECT_TYPE_MISMATCH`: the
  it.each([
    ["GET", "job-runs"],
    ["GET", "job-runs/cost-summary"],
    ["POST", "job-runs"],
    ["POST", "job-runs/x-1/cancel"],
    ["GET", "job-runs/x-1/logs"],
    ["GET", "job-runs/x-1/metrics"],
  ] as const)("%s %s answer 400 PROJECT_TYPE_MISMATCH for another type", async (method, operation) => {
    const { headers } = await harness.organization();
    const created = await post(headers, exampleBody({ plan: "basic" }));
    const url = `/v1/project/${created.json().data.project_id}/${operation}`;
    const answer = harness.app.inject({ method, url, headers }) as Answer;
    expect(await refusalOf(answer)).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
  });
});

/** Acknowledges closed schedules, as the operator does. */
function acknowledge(job: Job): { stop: () => Promise<void> } {
  let stopped = false;
  const loop = async () => {
    while (!stopped) {
      const { spec, status } = await job.actor.project(job.organizationId, job.id).catch(() => ({
        spec: undefined,
        status: undefined,
      }));
      const closedAt = spec?.job?.closedAt;
      if (closedAt !== undefined && status?.job?.scheduleClosedAt === undefined) {
        await job.actor
          .patchProjectStatus(job.organizationId, job.id, { scheduleClosedAt: closedAt })
          .catch(() => undefined);
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  };
  const running = loop();
  return {
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}

describe("the deletion of a job", () => {
  const scheduledAt = new Date("2026-02-01T00:05:00Z");
  const run = (job: Job, status?: Parameters<typeof runResource>[2]) =>
    job.actor.createRun(
      runResource(
        {
          organizationId: job.organizationId,
          projectId: job.id,
          id: `${job.id}-${scheduledAt.getTime() / 60_000}`,
        },
        scheduledAt,
        status,
      ),
    );
  const ended = {
    phase: "succeeded" as const,
    plan: "job-basic",
    startedAt: "2026-02-01T00:05:01Z",
    finishedAt: "2026-02-01T00:05:09Z",
    billedUntil: "2026-02-01T00:05:09Z",
    billedMinutes: 1,
    amount: "0.02",
  };

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: deletion closes the schedule first; after
  // Shows: docs/jobs.md#failures: delete | 409 `PROJECT_ALREADY_DELETED`
  it("closes its schedule first, and is complete immediately when no run is left", async () => {
    const job = await createJob(harness);
    const operator = acknowledge(job);
    const deleted = await job.send("DELETE");
    await operator.stop();
    expect(deleted.json()).toEqual({ status: "success", message: expect.any(String) });
    expect(deleted.statusCode).toBe(200);
    expect(await refusalOf(job.send("GET"))).toEqual([404, "PROJECT_NOT_FOUND"]);
    expect(await refusalOf(job.send("DELETE"))).toEqual([409, "PROJECT_ALREADY_DELETED"]);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: deletion closes the schedule first; after
  // Shows: docs/jobs.md#failures: delete | 409 `JOB_RUNS_PENDING`: a run is active, not seen yet, or not
  it("is JOB_RUNS_PENDING with a run that is active, not seen yet, or not charged; a retry succeeds after that", async () => {
    const job = await createJob(harness);
    const operator = acknowledge(job);
    const createdRun = await run(job);
    expect(await refusalOf(job.send("DELETE"))).toEqual([409, "JOB_RUNS_PENDING"]);
    const kept = await job.actor.project(job.organizationId, job.id);
    expect(kept.metadata.deletionTimestamp).toBeUndefined();
    expect(kept.spec.job?.closedAt).toBeDefined();
    expect((await job.send("GET")).statusCode).toBe(200);
    await job.actor.setStatus(createdRun, {
      phase: "running",
      plan: "job-basic",
      startedAt: ended.startedAt,
    });
    expect(await refusalOf(job.send("DELETE"))).toEqual([409, "JOB_RUNS_PENDING"]);
    await job.actor.setStatus(createdRun, ended);
    const uncharged = await job.send("DELETE");
    expect(uncharged.json()).toMatchObject({ code: "JOB_RUNS_PENDING", message: /charge/ });
    // The schedule was closed once; a retry closes nothing again.
    const { spec } = await job.actor.project(job.organizationId, job.id);
    expect(spec.job?.closedAt).toBe(kept.spec.job?.closedAt);
    await job.actor.setStatus(createdRun, { ...ended, chargedAt: "2026-02-01T00:05:11Z" });
    expect((await job.send("DELETE")).statusCode).toBe(200);
    await operator.stop();
  });

  // Shows: docs/jobs.md#failures: delete | 409 `JOB_RUNS_PENDING`: a run is active, not seen yet, or not
  it("waits for no run that was refused or never started", async () => {
    const job = await createJob(harness);
    const operator = acknowledge(job);
    await run(job, { conditions: [condition("Admitted", "False", "Overlap")] });
    const other = runResource(
      { organizationId: job.organizationId, projectId: job.id, id: `${job.id}-1-never` },
      scheduledAt,
    );
    await job.actor.createRun({
      ...other,
      status: { conditions: [condition("Finished", "False", "NeverStarted")] },
    });
    expect((await job.send("DELETE")).statusCode).toBe(200);
    await operator.stop();
  });

  it("is JOB_RUNS_PENDING too while kubectl's waits for a run", async () => {
    const job = await createJob(harness);
    const { metadata } = await job.actor.project(job.organizationId, job.id);
    const ref = { namespace: metadata.namespace, name: job.id };
    const setFinalizers = (finalizers: string[]) =>
      harness.admin.patch<Project>(projectResource, ref, { metadata: { finalizers } });
    await setFinalizers(["slipway.dev/project"]);
    const createdRun = await run(job);
    await harness.admin.delete(projectResource, ref);
    const isLeaving = async () =>
      (await harness.projects.find(job.organizationId, job.id))?.resource.metadata.deletionTimestamp;
    await expect.poll(isLeaving).toBeDefined();
    expect(await refusalOf(job.send("DELETE"))).toEqual([409, "JOB_RUNS_PENDING"]);
    await job.actor.setStatus(createdRun, { ...ended, chargedAt: "2026-02-01T00:05:11Z" });
    expect(await refusalOf(job.send("DELETE"))).toEqual([409, "PROJECT_ALREADY_DELETED"]);
    await setFinalizers([]);
  });

  // Shows: docs/jobs.md#failures: delete | 409 `JOB_RUNS_PENDING`: a run is active, not seen yet, or not
  it("sees a run that the project alone knows of, and one without a label", async () => {
    const job = await createJob(harness);
    const operator = acknowledge(job);
    await job.actor.patchProjectStatus(job.organizationId, job.id, { activeRun: `${job.id}-1` });
    expect(await refusalOf(job.send("DELETE"))).toEqual([409, "JOB_RUNS_PENDING"]);
    await job.actor.patchProjectStatus(job.organizationId, job.id, { activeRun: null });
    const bare = runResource(
      { organizationId: job.organizationId, projectId: job.id, id: `${job.id}-2-byhand` },
      scheduledAt,
    );
    const createdRun = await job.actor.createRun({ ...bare, metadata: { ...bare.metadata, labels: {} } });
    await expect.poll(() => refusalOf(job.send("DELETE"))).toEqual([409, "JOB_RUNS_PENDING"]);
    await job.actor.removeRun(createdRun);
    expect((await job.send("DELETE")).statusCode).toBe(200);
    await operator.stop();
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: a change of the schedule opens it again after a
  it("that was refused is taken back by a change of the schedule, also to the same one", async () => {
    const job = await createJob(harness);
    const operator = acknowledge(job);
    await run(job, { phase: "running", startedAt: ended.startedAt });
    expect(await refusalOf(job.send("DELETE"))).toEqual([409, "JOB_RUNS_PENDING"]);
    await operator.stop();
    const reopened = await job.send("PATCH", "schedule", { cron: "*/5 * * * *" });
    expect(reopened.json().data).toEqual({ cron: "*/5 * * * *", timezone: "UTC" });
    const { spec } = await job.actor.project(job.organizationId, job.id);
    expect(spec.job).toEqual({ cron: "*/5 * * * *" });
  });

  // Shows: docs/jobs.md#failures: delete | 503 `OPERATOR_UNAVAILABLE`: no operator acknowledges that the
  it("is 503 OPERATOR_UNAVAILABLE while the operator does not acknowledge that the schedule is closed; the job stays", async () => {
    const job = await createJob(harness);
    const project = await harness.projects.find(job.organizationId, job.id);
    if (!project) {
      throw new Error("no project");
    }
    await expect(closeJob(project, harness.services, 300)).rejects.toMatchObject({
      status: 503,
      code: "OPERATOR_UNAVAILABLE",
    });
    // An acknowledgement of an earlier closing does not count.
    await job.actor.patchProjectStatus(job.organizationId, job.id, {
      scheduleClosedAt: "2020-01-01T00:00:00Z",
    });
    await expect(closeJob(project, harness.services, 300)).rejects.toMatchObject({ status: 503 });
    expect((await job.send("GET")).statusCode).toBe(200);
  });
});
