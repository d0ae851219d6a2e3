import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  exampleWorkerBody,
  type FakeHarness,
  startFakeHarness,
  workerSpec,
} from "../../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../../test/kit/api-server/status-and-code.ts";

/** What `/v1` answers of workers: projects with instances and without an address. */

let harness: FakeHarness;
let headers: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness();
  headers = harness.key("acme", "* on organization:*", "* on project:*");
  await harness.project("acme", "mailer", workerSpec);
  await harness.project("acme", "gratis", { ...workerSpec, plan: "free" });
});
afterAll(() => harness.close());

const send = (method: "GET" | "POST" | "PATCH" | "PUT", path: string, payload?: object) =>
  harness.app.inject({
    method,
    url: `/v1/project${path}`,
    headers: { ...headers, ...(payload === undefined ? {} : { "content-type": "application/json" }) },
    ...(payload === undefined ? {} : { payload }),
  });

describe("what needs an address", () => {
  // Shows: docs/applications.md#workers: domain, custom domains, exposure and network analytics are
  it.each([
    ["PATCH", "domain", { domain: "my-worker" }],
    ["PATCH", "custom-domains", { custom_domains: ["worker.example.com"] }],
    ["PATCH", "exposure", { exposure: "public" }],
    ["GET", "metrics/network/summary", undefined],
    ["PATCH", "health", { healthcheck: { enabled: false } }],
    ["PATCH", "health", { healthcheck: null, termination_grace_period_seconds: 60 }],
    ["PATCH", "schedule", { cron: "* * * * *" }],
  ] as const)("%s %s is refused by its type", async (method, operation, body) => {
    expect(statusAndCode(await send(method, `/mailer/${operation}`, body))).toEqual([
      400,
      "PROJECT_TYPE_MISMATCH",
    ]);
  });
});

// Shows: docs/applications.md#workers: an instance that stops is sent SIGTERM without delay
it("has a time to stop, which may be changed", async () => {
  const changed = await send("PATCH", "/gratis/health", { termination_grace_period_seconds: 120 });
  expect(changed.json()).toMatchObject({ status: "success" });
  expect((await send("GET", "/gratis")).json().data).toMatchObject({ termination_grace_period_seconds: 120 });
});

describe("what its plan lacks", () => {
  // Shows: docs/applications.md#workers: the plans, prices and limits are those of HTTP projects
  it.each([
    [
      { plan: "free" },
      { autoscaling: { enabled: true, max_instances: 2 } },
      403,
      "AUTOSCALING_NOT_AVAILABLE_FOR_PLAN",
    ],
    // Shows: docs/applications.md#scaling-by-requests: of HTTP projects alone: of a worker it is 400
    [
      { plan: "premium" },
      { autoscaling: { enabled: true, max_instances: 2, requests_per_second_target: 10 } },
      400,
      "VALIDATION_FAILED",
    ],
    [{ plan: "basic" }, { instances: 100 }, 400, "VALIDATION_FAILED"],
    [{ plan: "job-basic" }, {}, 400, "VALIDATION_FAILED"],
    [{ plan: "golden" }, {}, 400, "PLAN_UNKNOWN"],
    [{ payment_mode: "per_minute" }, {}, 400, "PAYMENT_MODE_INVALID"],
  ])("%j with %j is refused", async (change, config, status, code) => {
    expect(statusAndCode(await send("POST", "", exampleWorkerBody(change, config)))).toEqual([status, code]);
  });

  it("is refused in a change of the plan, too", async () => {
    expect(statusAndCode(await send("PATCH", "/mailer/plan", { plan: "db-basic" }))).toEqual([
      400,
      "VALIDATION_FAILED",
    ]);
  });
});

describe("metrics", () => {
  // Shows: docs/applications.md#workers: metrics are of one instance, which must be named
  it("are of an instance alone", async () => {
    const { data } = (await send("GET", "/mailer/metrics/capabilities")).json();
    expect(data).toMatchObject({ access: "snapshot", groups: ["resources"] });
    const all = await send("GET", "/mailer/metrics");
    expect(all.json()).toMatchObject({ code: "VALIDATION_FAILED", errors: [{ field: "instance" }] });
    expect(statusAndCode(await send("GET", "/mailer/metrics?instance=mailer-0"))).toEqual([
      404,
      "INSTANCE_NOT_FOUND",
    ]);
    expect((await send("GET", "/gratis/metrics/capabilities")).json().data.access).toBe("none");
    expect(statusAndCode(await send("GET", "/gratis/metrics"))).toEqual([
      402,
      "NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN",
    ]);
  });
});

// Shows: docs/applications.md#workers: built from Git like HTTP projects
it("may have a Git source", async () => {
  const answer = await send("GET", "/mailer/source");
  expect(statusAndCode(answer)).not.toContain("PROJECT_TYPE_MISMATCH");
});
