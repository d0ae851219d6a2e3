import { type JobRun, jobRunName, type Project } from "@slipway/crds";
import { recordJobRuns, setOrganizationBlocked, storeJobRunLog } from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleBody, exampleJobBody } from "../../../test/kit/api-server/harness.ts";
import { condition, OperatorActor, runRow } from "../../../test/kit/api-server/job-runs.ts";
import { type Answer, postProject, refusalOf } from "../../../test/kit/api-server/jobs.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { projectResource } from "../resources.ts";
import { startRun } from "./start.ts";

/** One-off runs over a real apiserver and a real PostgreSQL. Tests play the operator. */

let harness: RealHarness;
beforeAll(async () => {
  harness = await startRealHarness();
});
afterAll(() => harness?.close());

interface Shop {
  id: string;
  organizationId: string;
  headers: Record<string, string>;
  actor: OperatorActor;
  send: (
    method: "GET" | "POST" | "DELETE",
    operation: string,
    payload?: object,
    headers?: Record<string, string>,
  ) => Answer;
}

const deployment = {
  id: "d1",
  status: "succeeded",
  startedAt: "2026-01-01T00:00:00Z",
  settingsHash: "h1",
  updatedImage: true,
  image: { reference: "registry.example.com/shop:1" },
  settings: { plan: "basic" },
};

/** An application, as one that serves unless said otherwise. */
async function createShop({
  deployments = [deployment] as object[],
  body = exampleBody({ plan: "basic" }),
} = {}): Promise<Shop> {
  const { id: organizationId, headers } = await harness.organization();
  const created = await postProject(harness, headers, body);
  const id: string = created.json().data.project_id;
  const actor = new OperatorActor(harness.admin);
  const ref = { namespace: `slipway-org-${organizationId}`, name: id };
  await harness.admin.patch<Project>(
    projectResource,
    ref,
    { status: { deployments } },
    { subresource: "status" },
  );
  await actor.setAccepted(organizationId, id);
  return {
    id,
    organizationId,
    headers,
    actor,
    send: (method, operation, payload, more = {}) =>
      harness.app.inject({
        method,
        url: `/v1/project/${id}/${operation}`,
        headers: { ...headers, ...more },
        ...(payload === undefined ? {} : { payload }),
      }),
  };
}

/** Decides on runs as the operator does. */
const deciding = (shop: Shop, reason?: string) =>
  shop.actor.play(shop.organizationId, async (run, actor) => {
    if (run.status?.conditions === undefined) {
      const admitted = reason === undefined ? "True" : "False";
      await actor.setStatus(run, { conditions: [condition("Admitted", admitted, reason ?? "Admitted")] });
    }
  });

const command = ["node", "migrate.js"];
const start = (shop: Shop, body: object = { command }, key?: string) =>
  shop.send("POST", "runs", body, key === undefined ? {} : { "idempotency-key": key });

async function admitted(shop: Shop, body: object = { command }): Promise<JobRun> {
  const operator = deciding(shop);
  const answer = await start(shop, body);
  await operator.stop();
  expect(answer.statusCode, answer.body).toBe(202);
  return (await shop.actor.run(shop.organizationId, answer.json().data.run.id)) as JobRun;
}

const read = async (shop: Shop, id: string) => (await shop.send("GET", `runs/${id}`)).json().data?.run;

describe("starting a one-off run", () => {
  // Shows: docs/applications.md#endpoints: `POST /v1/project/:id/runs` | 202, `data.run`: `id`
  // Shows: docs/applications.md#one-off-runs: `command` is 1 to 64 words
  it("creates a manual run with its command, and answers 202 once it is admitted", async () => {
    const shop = await createShop();
    const run = await admitted(shop, { command, timeout_seconds: 60 });
    expect(run.spec).toMatchObject({
      projectRef: { name: shop.id },
      trigger: "manual",
      command,
      timeoutSeconds: 60,
    });
    expect(run.metadata.labels).toMatchObject({ "slipway.dev/type": "http" });
    expect(run.metadata.name.startsWith(`${jobRunName(shop.id, new Date(run.spec.scheduledAt))}-`)).toBe(
      true,
    );
    await expect
      .poll(async () => read(shop, run.metadata.name))
      .toMatchObject({ id: run.metadata.name, status: "pending", command, timeout_seconds: 60 });
  });

  // Shows: docs/applications.md#errors-other-operations: start a run | 409 `PROJECT_NOT_DEPLOYED`: no deployment
  // Shows: docs/applications.md#errors-other-operations: start a run | 409 `RUN_LIMIT_REACHED`, with `limit`
  // Shows: docs/applications.md#errors-other-operations: start a run | 409 `RUN_NOT_ACCEPTED`: its plan
  it.each([
    ["NotDeployed", 409, "PROJECT_NOT_DEPLOYED"],
    ["TooManyRuns", 409, "RUN_LIMIT_REACHED"],
    ["Paused", 409, "PROJECT_PAUSED"],
    ["NotAccepted", 409, "RUN_NOT_ACCEPTED"],
    ["ProjectGone", 409, "PROJECT_ALREADY_DELETED"],
  ] as const)("that the operator refuses with %s is %i %s", async (reason, status, code) => {
    const shop = await createShop();
    const operator = deciding(shop, reason);
    expect(await refusalOf(start(shop))).toEqual([status, code]);
    await operator.stop();
  });

  // Shows: docs/applications.md#errors-other-operations: start a run | 402 `ORGANIZATION_BLOCKED`, `BUDGET_EXHAUSTED`; 409
  it("is refused immediately for what has never served, is paused, is no application or has too many", async () => {
    const never = await createShop({ deployments: [{ ...deployment, status: "failed" }] });
    expect(await refusalOf(start(never))).toEqual([409, "PROJECT_NOT_DEPLOYED"]);
    const paused = await createShop();
    await paused.send("POST", "pause");
    expect(await refusalOf(start(paused))).toEqual([409, "PROJECT_PAUSED"]);
    const job = await createShop({ deployments: [], body: exampleJobBody() as never });
    expect(await refusalOf(start(job))).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
    const blocked = await createShop();
    await setOrganizationBlocked(harness.ledger, blocked.organizationId, true);
    expect(await refusalOf(start(blocked))).toEqual([402, "ORGANIZATION_BLOCKED"]);
    const busy = await createShop();
    const operator = deciding(busy);
    for (let count = 0; count < 5; count += 1) {
      expect((await start(busy)).statusCode).toBe(202);
    }
    const sixth = (await start(busy)).json();
    expect(sixth).toMatchObject({ code: "RUN_LIMIT_REACHED", limit: 5 });
    await operator.stop();
    // The plan of what serves counts, as it is billed, and not that of a version that is rolled out.
    const free = await createShop({ deployments: [{ ...deployment, settings: { plan: "free" } }] });
    await admitted(free);
    expect((await start(free)).json()).toMatchObject({ code: "RUN_LIMIT_REACHED", limit: 1 });
    expect(await busy.actor.listRuns(busy.organizationId)).toHaveLength(5);
  });

  // Shows: docs/applications.md#errors-other-operations: start a run | 503 `OPERATOR_UNAVAILABLE`: no operator
  it("is 503 while no operator decides, and nothing of it is left", async () => {
    const shop = await createShop();
    const project = await harness.projects.find(shop.organizationId, shop.id);
    const id = jobRunName(shop.id, new Date(), "unseen");
    const answer = startRun(project as ApiProject, id, harness.services, { command, limitMs: 300 });
    await expect(answer).rejects.toMatchObject({ status: 503, code: "OPERATOR_UNAVAILABLE" });
    expect(await shop.actor.listRuns(shop.organizationId)).toEqual([]);
  });

  // Shows: docs/applications.md#errors-other-operations: start a run | 400 `VALIDATION_FAILED`, `PROJECT_TYPE_MISMATCH`
  it.each([
    [{}],
    [{ command: [] }],
    [{ command: "ls" }],
    [{ command: ["x".repeat(1_025)] }],
    [{ command: Array(5).fill("x".repeat(1_000)) }],
    [{ command: ["ä".repeat(1_000), "ä".repeat(1_000), "ä".repeat(49)] }],
    [{ command: Array(65).fill("x") }],
    [{ command, timeout_seconds: 9 }],
    [{ command, timeout_seconds: 3_601 }],
    [{ command, image: "other" }],
  ])("is 400 for a body that is none, %#", async (body) => {
    const shop = await createShop();
    expect(await refusalOf(start(shop, body))).toEqual([400, "VALIDATION_FAILED"]);
  });

  // Shows: docs/applications.md#one-off-runs: one `Idempotency-Key` stands for one run
  it("is one run for one key, and another body under it is a conflict", async () => {
    const shop = await createShop();
    const operator = deciding(shop);
    const key = "one-off-key-0123456789";
    const answers = await Promise.all([start(shop, { command }, key), start(shop, { command }, key)]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([202, 202]);
    expect(answers[0]?.json()).toEqual(answers[1]?.json());
    expect(await refusalOf(start(shop, { command: ["rm"] }, key))).toEqual([409, "IDEMPOTENCY_KEY_CONFLICT"]);
    await operator.stop();
    expect(await shop.actor.listRuns(shop.organizationId)).toHaveLength(1);
  });
});

describe("a one-off run", () => {
  const begun = Date.now() - 60_000;
  const times = {
    startedAt: new Date(begun).toISOString(),
    finishedAt: new Date(begun + 59_000).toISOString(),
  };

  // Shows: docs/applications.md#fields-of-answers: one-off run | `id`, `status`
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/runs` | `data`: `runs`, `pagination`
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/runs/cost-summary` | `data`: `totals`
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/runs/:runId` | `data.run`
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/runs/:runId/logs` | `data`: `run`
  // Shows: docs/applications.md#one-off-runs: the last 50 KiB of its log are kept
  it("shows its exit code and its charge, and still does once only the ledger has it", async () => {
    const shop = await createShop();
    const run = await admitted(shop);
    const id = run.metadata.name;
    const status: JobRun["status"] = {
      ...run.status,
      phase: "failed",
      plan: "basic",
      deployment: "d1",
      image: { reference: "registry.example.com/shop:1" },
      ...times,
      exitCode: 3,
      billedMinutes: 1,
      amount: "0.05",
    };
    await shop.actor.setStatus(run, status);
    const shown = {
      id,
      status: "failed",
      command,
      deployment_id: "d1",
      image: { reference: "registry.example.com/shop:1" },
      exit_code: 3,
      billed_minutes: 1,
      plan: "basic",
      amount: 0.05,
      currency: "brl",
      duration_seconds: 59,
    };
    await expect.poll(async () => read(shop, id)).toMatchObject(shown);
    const listed = (await shop.send("GET", "runs?status=failed")).json().data;
    expect(listed.runs).toEqual([await read(shop, id)]);
    expect(listed.pagination).toEqual({ page: 1, limit: 15, total: 1, total_pages: 1 });

    const names = { organizationId: shop.organizationId, projectId: shop.id, id };
    const row = runRow(names, new Date(run.spec.scheduledAt), {
      trigger: "manual",
      status: "failed",
      started_at: new Date(times.startedAt),
      finished_at: new Date(times.finishedAt),
      billed_until: new Date(times.finishedAt),
      billed_minutes: 1,
      plan: "basic",
      price_per_minute: "0.05",
      amount: "0.05",
      metrics: { status: "unavailable", exitCode: 3 },
    });
    expect(await recordJobRuns(harness.ledger, [row])).toMatchObject([{ outcome: "recorded" }]);
    expect((await shop.send("GET", "runs/cost-summary")).json().data).toEqual({
      totals: [{ currency: "brl", total_amount: 0.05, executed_runs: 1, billed_minutes: 1 }],
      cycle_started_at: expect.any(String),
      next_reset_at: expect.any(String),
    });
    const job = await createShop({ deployments: [], body: exampleJobBody() as never });
    expect(await refusalOf(job.send("GET", "runs/cost-summary"))).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
    await storeJobRunLog(harness.ledger, row, "out of ideas\n");
    await shop.actor.removeRun(run);
    await expect
      .poll(async () => read(shop, id))
      .toEqual({
        ...(({ command: _, deployment_id: __, image: ___, ...rest }) => rest)(shown),
        requested_at: run.spec.scheduledAt,
        started_at: times.startedAt,
        finished_at: times.finishedAt,
      });
    expect((await shop.send("GET", `runs/${id}/logs`)).json().data).toMatchObject({
      run: { id, exit_code: 3 },
      logs: "out of ideas\n",
    });
    expect((await shop.send("GET", "runs")).json().data.runs).toEqual([await read(shop, id)]);
  });

  // Shows: docs/applications.md#one-off-runs: one whose container does not start within ten minutes
  it("that never started has failed, and one that was refused never was", async () => {
    const shop = await createShop();
    const run = await admitted(shop);
    await shop.actor.setStatus(run, {
      ...run.status,
      conditions: [...(run.status?.conditions ?? []), condition("Finished", "False", "NeverStarted")],
    });
    await expect
      .poll(async () => read(shop, run.metadata.name))
      .toMatchObject({ status: "failed", reason: "never_started" });
    const listed = (await shop.send("GET", "runs?status=failed")).json().data.runs;
    expect(listed).toHaveLength(1);
    const cancelled = await shop.send("POST", `runs/${run.metadata.name}/cancel`);
    expect(cancelled.json()).toMatchObject({
      message: "the run had ended",
      data: { run: { status: "failed" } },
    });
    expect((await shop.send("GET", `runs/${run.metadata.name}/logs`)).json().data.logs).toBe("");
    const operator = deciding(shop, "NotDeployed");
    expect((await start(shop)).statusCode).toBe(409);
    await operator.stop();
    expect((await shop.send("GET", "runs")).json().data.pagination.total).toBe(1);
  });

  // Shows: docs/applications.md#errors-other-operations: read, cancel a run, its logs | 404 `JOB_RUN_NOT_FOUND`
  it("of another project or organization is unknown", async () => {
    const shop = await createShop();
    const id = (await admitted(shop)).metadata.name;
    const other = await createShop();
    for (const path of [`runs/${id}`, `runs/${id}/logs`]) {
      expect(await refusalOf(other.send("GET", path))).toEqual([404, "JOB_RUN_NOT_FOUND"]);
    }
    expect(await refusalOf(other.send("POST", `runs/${id}/cancel`))).toEqual([404, "JOB_RUN_NOT_FOUND"]);
    const foreign = await harness.app.inject({
      url: `/v1/project/${shop.id}/runs/${id}`,
      headers: other.headers,
    });
    expect([403, 404]).toContain(foreign.statusCode);
    expect((await shop.actor.run(shop.organizationId, id))?.spec).not.toHaveProperty("cancelRequestedAt");
  });

  // Shows: docs/applications.md#endpoints: `POST /v1/project/:id/runs/:runId/cancel` | `data.run`
  it("that is cancelled answers the state that it came to", async () => {
    const shop = await createShop();
    const run = await admitted(shop);
    const operator = shop.actor.play(shop.organizationId, async (live, actor) => {
      if (live.spec.cancelRequestedAt !== undefined && live.status?.phase === undefined) {
        const finished = condition("Finished", "False", "Cancelled");
        await actor.setStatus(live, { phase: "cancelled", conditions: [finished] });
      }
    });
    const answer = await shop.send("POST", `runs/${run.metadata.name}/cancel`);
    await operator.stop();
    expect(answer.json().data.run).toEqual({
      id: run.metadata.name,
      status: "cancelled",
      billed_minutes: 0,
      currency: "brl",
    });
  });
});
