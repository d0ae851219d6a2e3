import { readFileSync } from "node:fs";
import { type Project, type ProjectSpec, parseCatalog } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { costsMore, parsePlanBody, withPlan, withRequestedPlan } from "./plan-change.ts";

const catalog = parseCatalog(
  readFileSync(new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);
const failureOf = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return error;
  }
  return "no failure";
};
const http: ProjectSpec = { ...exampleSpec, plan: "premium" };
const job: ProjectSpec = {
  type: "job",
  name: "nightly",
  plan: "job-basic",
  paymentMode: "per_minute",
  image: { url: "registry.example.com/job:1", isPublic: true },
  job: { cron: "0 0 * * *" },
};

describe("parsePlanBody", () => {
  it("takes a plan, and a payment mode when there is one", () => {
    expect(parsePlanBody({ plan: "basic" }, "http")).toEqual({ plan: "basic" });
    expect(parsePlanBody({ plan: "basic", payment_mode: "yearly" }, "http")).toEqual({
      plan: "basic",
      paymentMode: "yearly",
    });
  });

  it.each([
    [{}, "http", "VALIDATION_FAILED", ["plan"]],
    [undefined, "http", "VALIDATION_FAILED", ["body"]],
    [{ plan: "A B" }, "http", "VALIDATION_FAILED", ["plan"]],
    // Shows: docs/applications.md#errors-project-creation: 400 | `PAYMENT_MODE_INVALID`
    [{ plan: "basic", payment_mode: "weekly" }, "http", "PAYMENT_MODE_INVALID", ["payment_mode"]],
    [{ plan: "job-basic", payment_mode: 3 }, "job", "SCHEDULED_JOB_PAYMENT_MODE_INVALID", ["payment_mode"]],
    [{ plan: 1, payment_mode: "weekly", x: 1 }, "http", "VALIDATION_FAILED", ["payment_mode", "plan", "x"]],
  ] as const)("%# refuses %j", (body, type, code, fields) => {
    const failure = failureOf(() => parsePlanBody(body, type));
    expect(failure).toMatchObject({ status: 400, code });
    const { errors } = (failure as { extra: { errors: { field: string }[] } }).extra;
    expect(errors.map(({ field }) => field).sort()).toEqual(fields);
  });
});

describe("withPlan", () => {
  it("changes the plan and nothing else", () => {
    expect(withPlan(http, { plan: "basic" }, catalog)).toEqual({ ...http, plan: "basic" });
    expect(withPlan(http, { plan: "premium", paymentMode: "yearly" }, catalog)).toEqual({
      ...http,
      paymentMode: "yearly",
    });
    expect(withPlan(job, { plan: "job-premium" }, catalog)).toEqual({ ...job, plan: "job-premium" });
  });

  it.each([
    ["an unknown plan", http, { plan: "golden" }, "PLAN_UNKNOWN", "plan"],
    ["an unknown job plan", job, { plan: "job-golden" }, "PLAN_UNKNOWN", "plan"],
    ["a plan of another type", http, { plan: "db-free" }, "VALIDATION_FAILED", "plan"],
    ["a plan that is not for jobs", job, { plan: "basic" }, "VALIDATION_FAILED", "plan"],
    [
      "per_minute",
      http,
      { plan: "basic", paymentMode: "per_minute" },
      "PAYMENT_MODE_INVALID",
      "payment_mode",
    ],
    // Shows: docs/applications.md#errors-project-creation: 400 | `SCHEDULED_JOB_PAYMENT_MODE_INVALID`
    [
      "another than per_minute for a job",
      job,
      { plan: "job-basic", paymentMode: "hourly" },
      "SCHEDULED_JOB_PAYMENT_MODE_INVALID",
      "payment_mode",
    ],
    [
      "storage over 1 GB on a free plan",
      { ...http, storage: { persistent: false, capacity: 2 } },
      { plan: "free" },
      "VALIDATION_FAILED",
      "storage.capacity",
    ],
    [
      "more instances than the plan has",
      { ...http, instances: 4 },
      { plan: "basic" },
      "VALIDATION_FAILED",
      "instances",
    ],
    [
      "a higher maximum than the plan has",
      { ...http, autoscaling: { enabled: true, maxInstances: 5 } },
      { plan: "basic" },
      "VALIDATION_FAILED",
      "autoscaling.max_instances",
    ],
  ] as const)("answers 400 to %s", (_name, spec, wanted, code, field) => {
    const failure = failureOf(() => withPlan(spec as ProjectSpec, wanted, catalog));
    expect(failure).toMatchObject({ status: 400, code, extra: { errors: [{ field }] } });
  });

  // Shows: docs/applications.md#project-settings: plan: settings that do not fit it are 400
  it("names all broken rules in one answer", () => {
    const spec: ProjectSpec = { ...http, storage: { persistent: false, capacity: 2 } };
    const failure = failureOf(() => withPlan(spec, { plan: "free", paymentMode: "per_minute" }, catalog));
    expect(failure).toMatchObject({
      status: 400,
      code: "VALIDATION_FAILED",
      extra: { errors: expect.arrayContaining([expect.objectContaining({ field: "payment_mode" })]) },
    });
    expect((failure as { extra: { errors: unknown[] } }).extra.errors).toHaveLength(2);
  });

  // Shows: docs/applications.md#project-settings: plan: settings that do not fit it are 400
  it.each([
    [{ healthcheck: { enabled: true, path: "/up" } }, "HEALTHCHECK_NOT_AVAILABLE_FOR_PLAN"],
    [{ autoscaling: { enabled: true, maxInstances: 2 } }, "AUTOSCALING_NOT_AVAILABLE_FOR_PLAN"],
    [
      { networkAccess: { ingressWhiteList: [{ cidr: "203.0.113.0/24" }] } },
      "NETWORK_ACCESS_NOT_AVAILABLE_FOR_PLAN",
    ],
    [{ subdomain: "my-shop" }, "CUSTOM_SUBDOMAIN_NOT_AVAILABLE_FOR_PLAN"],
  ])("answers 403 to a project with %j on a plan without", (uses, code) => {
    expect(failureOf(() => withPlan({ ...http, ...uses }, { plan: "free" }, catalog))).toMatchObject({
      status: 403,
      code,
    });
  });

  it("leaves a plan's countable limit to its quota", () => {
    expect(withPlan({ ...http, instances: 3 }, { plan: "free" }, catalog).plan).toBe("free");
  });
});

describe("the plan of a database", () => {
  it.each([
    [databaseSpec("postgresql"), "db-business"],
    [databaseSpec("mariadb"), "db-basic"],
    [databaseSpec("valkey"), "db-premium_plus"],
    [databaseSpec("valkey", { plan: "cache-free", profile: "cache", storage: undefined }), "cache-business"],
  ])("%# changes, and nothing else", (spec, plan) => {
    expect(withPlan(spec, { plan }, catalog)).toEqual({ ...spec, plan });
  });

  // Shows: docs/databases-api.md#change-of-plan: 400: a plan that does not offer what the project has
  it.each([
    [databaseSpec("postgresql"), "db-free", ["storage.capacity"]],
    [databaseSpec("postgresql", { instances: 2 }), "db-free", ["instances", "storage.capacity"]],
    [databaseSpec("postgresql"), "cache-basic", ["plan"]],
    [databaseSpec("mariadb"), "db-free", ["plan", "storage.capacity"]],
    [databaseSpec("clickhouse"), "db-premium", ["plan"]],
    [
      databaseSpec("clickhouse", { plan: "analytics-business", instances: 3 }),
      "analytics-basic",
      ["instances"],
    ],
    [databaseSpec("valkey"), "queue-basic", ["plan"]],
    [databaseSpec("valkey"), "basic", ["plan"]],
    [databaseSpec("postgresql"), "db-golden", ["plan"]],
  ])("%# is refused where the other one does not offer what there is", (spec, plan, fields) => {
    const failure = failureOf(() => withPlan(spec, { plan }, catalog));
    expect(failure).toMatchObject({ status: 400 });
    const { errors } = (failure as { extra: { errors: { field: string }[] } }).extra;
    expect([...new Set(errors.map(({ field }) => field))].sort()).toEqual(fields);
  });
});

describe("withRequestedPlan", () => {
  const NOW = "2026-02-01T00:00:00.000Z";
  const EARLIER = "2026-01-01T00:00:00.000Z";
  const live = (change: Partial<ProjectSpec>, status: Project["status"]): Project => ({
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "pshop", namespace: "slipway-org-acme" },
    spec: databaseSpec("clickhouse", change),
    status,
  });
  const request = (project: Project, plan: string, paymentMode?: ProjectSpec["paymentMode"]) =>
    withRequestedPlan(project, paymentMode ? { plan, paymentMode } : { plan }, catalog, NOW);
  const requested = { plan: "analytics-premium", planRequestedAt: EARLIER };
  const planChange = {
    status: "failed",
    fromPlan: "analytics-basic",
    toPlan: "analytics-premium",
    requestedAt: EARLIER,
    startedAt: EARLIER,
    finishedAt: EARLIER,
  } as const;

  it("requests another plan, with a time that distinguishes the request from others", () => {
    const project = live({}, { plan: "analytics-basic" });
    expect(request(project, "analytics-premium")).toEqual({
      ...project.spec,
      plan: "analytics-premium",
      planRequestedAt: NOW,
    });
  });

  it("requests nothing when the plan is in force: only the payment mode changes", () => {
    const project = live({}, { plan: "analytics-basic" });
    expect(request(project, "analytics-basic", "yearly")).toEqual({ ...project.spec, paymentMode: "yearly" });
  });

  // Shows: docs/databases-api.md#change-of-plan: 409 `PLAN_CHANGE_IN_PROGRESS`: another one is in
  it("is refused with 409 while another one runs", () => {
    const running = live(requested, {
      plan: "analytics-basic",
      planChange: { ...planChange, status: "in_progress" },
    });
    for (const project of [live(requested, { plan: "analytics-basic" }), running]) {
      for (const plan of ["analytics-premium", "analytics-business", "analytics-basic"]) {
        const failure = failureOf(() => request(project, plan));
        expect(failure).toMatchObject({ status: 409, code: "PLAN_CHANGE_IN_PROGRESS" });
      }
    }
  });

  // Shows: docs/databases-api.md#change-of-plan: the next request clears a failure; without a change
  it("is a new request after one that failed, for the same plan, another one, and back", () => {
    const failed = live(requested, { plan: "analytics-basic", planChange });
    for (const plan of ["analytics-premium", "analytics-business", "analytics-basic"]) {
      expect(request(failed, plan)).toMatchObject({ plan, planRequestedAt: NOW });
    }
  });
});

// Shows: docs/budgets.md#over-v1: 402 `BUDGET_EXHAUSTED`
describe("costsMore", () => {
  const hourly: ProjectSpec = { ...http, plan: "premium", paymentMode: "hourly" };
  const database = databaseSpec("postgresql");

  it.each<[string, ProjectSpec, Partial<ProjectSpec>, boolean]>([
    ["the plan and mode as they are", hourly, {}, false],
    ["a cheaper plan", hourly, { plan: "basic" }, false],
    ["a plan that costs nothing", hourly, { plan: "free" }, false],
    ["a dearer plan", hourly, { plan: "business" }, true],
    ["a dearer plan of a paused project", hourly, { plan: "business", paused: true }, false],
    ["a term that is paid ahead", hourly, { paymentMode: "monthly" }, true],
    ["a cheaper plan that is paid ahead", hourly, { plan: "basic", paymentMode: "yearly" }, true],
    ["no term any more", { ...hourly, paymentMode: "yearly" }, { paymentMode: "monthly" }, false],
    [
      "a dearer plan without a term",
      { ...hourly, paymentMode: "yearly" },
      { plan: "business", paymentMode: "hourly" },
      true,
    ],
    ["a plan instead of one that is not sold any more", { ...hourly, plan: "gone" }, { plan: "basic" }, true],
    ["a dearer plan of a job", job, { plan: "job-premium" }, true],
    ["a cheaper plan of a job", { ...job, plan: "job-premium" }, { plan: "job-basic" }, false],
    ["a dearer plan of a database", database, { plan: "db-business" }, true],
    ["a cheaper plan of a database", database, { plan: "db-basic" }, false],
  ])("%s", (_, before, change, expected) => {
    expect(costsMore({ ...before, ...change }, before, catalog)).toBe(expected);
  });

  it("counts storage that a cheaper plan does not include", () => {
    const lean = structuredClone(catalog);
    const offer = lean.databasePlans.find(({ plan }) => plan === "db-premium")?.engines.postgresql;
    Object.assign(offer?.storage ?? {}, { included: 5 });
    expect(costsMore({ ...database, plan: "db-basic" }, database, lean)).toBe(true);
  });
});
