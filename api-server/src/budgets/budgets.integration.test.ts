import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type DeletedProject, organizationNamespace, type Project, type ProjectSpec } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleBody, exampleJobBody, exampleSpec, jobSpec } from "../../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { insertCharge } from "../../../test/kit/ledger/charge.ts";
import { deletedProjectResource, projectResource } from "../resources.ts";

/** Budgets over a real kube-apiserver with the API server's own roles, and a real PostgreSQL. */

let harness: RealHarness;
let owner: Awaited<ReturnType<RealHarness["organization"]>>;
beforeAll(async () => {
  harness = await startRealHarness();
  owner = await harness.organization();
});
afterAll(() => harness?.close());

const BUDGET = "/v1/organization/budget";
const send = (method: "GET" | "POST" | "PUT" | "DELETE", url: string, payload?: object) =>
  harness.app.inject({ method, url, headers: owner.headers, ...(payload ? { payload } : {}) });
const charge = (amount: string) => insertCharge(harness.ledger, { organizationId: owner.id, amount });

// Shows: docs/budgets.md#over-v1: 404 `BUDGET_NOT_FOUND`
// Shows: docs/budgets.md#over-v1: 400 `VALIDATION_FAILED`
it("is set, read and removed, within its bounds", async () => {
  expect(statusAndCode(await send("GET", BUDGET))).toEqual([404, "BUDGET_NOT_FOUND"]);
  for (const body of [
    { amount: "0.00" },
    { amount: "1e3" },
    { amount: "-1" },
    { amount: "100000000000" },
    { amount: 100 },
    { amount: "100", notices: [0] },
    { amount: "100", notices: [50, 50] },
    { amount: "100", hard_cap: "yes" },
    { amount: "100", currency: "usd" },
  ]) {
    expect(statusAndCode(await send("PUT", BUDGET, body)), JSON.stringify(body)).toEqual([
      400,
      "VALIDATION_FAILED",
    ]);
  }
  const set = await send("PUT", BUDGET, { amount: "100.50" });
  expect(set.statusCode, set.body).toBe(200);
  const data = { amount: "100.5", notices: [50, 80, 100], hard_cap: false, spent: "0", exhausted: false };
  expect(set.json().data).toMatchObject({ ...data, reached: [] });
  expect((await send("GET", BUDGET)).json().data).toMatchObject(data);
  expect((await send("DELETE", BUDGET)).statusCode).toBe(200);
  expect(statusAndCode(await send("DELETE", BUDGET))).toEqual([404, "BUDGET_NOT_FOUND"]);
});

// Shows: docs/budgets.md#over-v1: 402 `BUDGET_EXHAUSTED`
// Shows: docs/budgets.md#the-hard-cap: a project that a user paused | stays paused
it("refuses a resume while a hard cap is reached; who pauses or resumes takes the budget's mark away", async () => {
  const id = "pcapped";
  await harness.project(owner.id, id, { paused: true, pausedBy: "budget" });
  const spec = async () => {
    const ref = { namespace: organizationNamespace(owner.id), name: id };
    const { paused, pausedBy } = (await harness.admin.get<Project>(projectResource, ref)).spec;
    return { paused, pausedBy };
  };
  await charge("100");
  await send("PUT", BUDGET, { amount: "100", hard_cap: true });
  expect((await send("GET", BUDGET)).json().data).toMatchObject({ spent: "100", exhausted: true });
  expect((await send("GET", `/v1/project/${id}`)).json().data.paused_by).toBe("budget");
  expect(statusAndCode(await send("POST", `/v1/project/${id}/resume`))).toEqual([402, "BUDGET_EXHAUSTED"]);
  expect(await spec()).toEqual({ paused: true, pausedBy: "budget" });
  await send("PUT", BUDGET, { amount: "100.01", hard_cap: true });
  expect((await send("POST", `/v1/project/${id}/pause`)).statusCode).toBe(200);
  expect(await spec()).toEqual({ paused: true, pausedBy: undefined });
  expect((await send("POST", `/v1/project/${id}/resume`)).statusCode).toBe(200);
  expect(await spec()).toEqual({ paused: undefined, pausedBy: undefined });
});

describe("while a hard cap is reached", () => {
  let capped: Awaited<ReturnType<RealHarness["organization"]>>;
  beforeAll(async () => {
    capped = await harness.organization();
    const of = (id: string, change: Partial<ProjectSpec>) => harness.project(capped.id, id, change);
    const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: false };
    await Promise.all([
      of("pshop", { plan: "premium", instances: 2 }),
      of("ppaused", { plan: "basic", paused: true }),
      of("pbuilt", { plan: "basic", image: undefined, source, build: {} }),
      of("pjob", jobSpec),
      createDeleted(),
    ]);
    await insertCharge(harness.ledger, { organizationId: capped.id, amount: "100" });
    expect((await call("PUT", BUDGET, { amount: "100", hard_cap: true })).statusCode).toBe(200);
  });

  const call = (method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", url: string, payload?: object) =>
    harness.app.inject({ method, url, headers: capped.headers, ...(payload ? { payload } : {}) });
  /** A deleted project that can be undeleted. */
  async function createDeleted() {
    const metadata = { name: "pgone-0c6b4d3e", namespace: organizationNamespace(capped.id) };
    const state = JSON.stringify({
      project: { metadata: { ...metadata, name: "pgone" }, spec: exampleSpec },
    });
    await harness.admin.create(resources.secrets, {
      metadata,
      data: { "state.json": Buffer.from(state).toString("base64") },
    } as KubernetesObject);
    await harness.admin.create<DeletedProject>(deletedProjectResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "DeletedProject",
      metadata,
      spec: {
        projectRef: { name: "pgone", uid: "0c6b4d3e-1111" },
        displayName: exampleSpec.name,
        type: exampleSpec.type,
        plan: exampleSpec.plan,
        deletedAt: new Date().toISOString(),
        expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
        volumes: [],
      },
    });
  }

  // Shows: docs/budgets.md#over-v1: 402 `BUDGET_EXHAUSTED`
  // Shows: docs/applications.md#errors-project-creation: 402 | `BUDGET_EXHAUSTED`
  // Shows: docs/applications.md#errors-other-operations: start a run | 402 `ORGANIZATION_BLOCKED`, `BUDGET_EXHAUSTED`; 409
  // Shows: docs/applications.md#errors-other-operations: PATCH autoscaling | 402 `ORGANIZATION_BLOCKED`, `BUDGET_EXHAUSTED`: for
  // Shows: docs/applications.md#errors-other-operations: PATCH plan | 402, 409
  // Shows: docs/jobs.md#failures: create | 402 `ORGANIZATION_BLOCKED`, `BUDGET_EXHAUSTED`; 409 `INSUFFICIENT_PLAN_CAPACITY`
  // Shows: docs/jobs.md#failures: run now | 402 `ORGANIZATION_BLOCKED`
  // Shows: docs/undelete.md#errors: 402, 409 | those of a creation
  it.each([
    ["a creation", "POST", "/v1/project", exampleBody()],
    ["the creation of a job", "POST", "/v1/project", exampleJobBody()],
    ["a resume", "POST", "/v1/project/ppaused/resume", undefined],
    ["an undelete", "POST", "/v1/project/pgone/undelete", undefined],
    ["a run", "POST", "/v1/project/pshop/runs", { command: ["true"] }],
    ["a run of a job", "POST", "/v1/project/pjob/job-runs", undefined],
    ["a deployment from Git", "POST", "/v1/project/pbuilt/deploy", {}],
    ["more instances", "PATCH", "/v1/project/pshop/autoscaling", { instances: 3 }],
    ["a dearer plan", "PATCH", "/v1/project/pshop/plan", { plan: "business" }],
    [
      "a term that is paid ahead",
      "PATCH",
      "/v1/project/pshop/plan",
      { plan: "basic", payment_mode: "monthly" },
    ],
  ] as const)("%s is refused", async (_, method, url, body) => {
    expect(statusAndCode(await call(method, url, body))).toEqual([402, "BUDGET_EXHAUSTED"]);
  });

  // Shows: docs/budgets.md#over-v1: 402 `BUDGET_EXHAUSTED`
  it.each([
    ["a read", "GET", "/v1/project/pshop", undefined],
    ["fewer instances", "PATCH", "/v1/project/pshop/autoscaling", { instances: 1 }],
    ["a cheaper plan", "PATCH", "/v1/project/pshop/plan", { plan: "basic" }],
    ["any plan of a paused project", "PATCH", "/v1/project/ppaused/plan", { plan: "business" }],
    ["a pause", "POST", "/v1/project/pshop/pause", undefined],
    ["a deletion", "DELETE", "/v1/project/pshop", undefined],
  ] as const)("%s is not", async (_, method, url, body) => {
    const answer = await call(method, url, body);
    expect(answer.statusCode, answer.body).toBe(200);
  });
});
