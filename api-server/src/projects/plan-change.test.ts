import { readFileSync } from "node:fs";
import { type ProjectSpec, parseCatalog } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { exampleSpec } from "../testing/harness.ts";
import { parsePlanBody, withPlan } from "./plan-change.ts";

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

  it("names every broken rule at once", () => {
    const spec: ProjectSpec = { ...http, storage: { persistent: false, capacity: 2 } };
    const failure = failureOf(() => withPlan(spec, { plan: "free", paymentMode: "per_minute" }, catalog));
    expect(failure).toMatchObject({
      status: 400,
      code: "VALIDATION_FAILED",
      extra: { errors: expect.arrayContaining([expect.objectContaining({ field: "payment_mode" })]) },
    });
    expect((failure as { extra: { errors: unknown[] } }).extra.errors).toHaveLength(2);
  });

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

  it("leaves a plan's countable limit to its slots", () => {
    expect(withPlan({ ...http, instances: 3 }, { plan: "free" }, catalog).plan).toBe("free");
  });
});
