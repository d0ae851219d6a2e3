import { readFileSync } from "node:fs";
import { type Project, type ProjectSpec, type ProjectStatus, parseCatalog } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { offerErrors, planChangeOf, planInForce } from "./plan.ts";

const file = new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url);
const catalog = parseCatalog(readFileSync(file, "utf8"));

function refused(spec: ProjectSpec, all = catalog): string[] {
  const plan = all.databasePlans.find((one) => one.plan === spec.plan);
  if (!plan) {
    throw new Error(`no plan ${spec.plan}`);
  }
  return offerErrors(spec, plan, all).map(({ field, code }) => (code ? `${field} ${code}` : field));
}
const storage = (capacity: number) => ({ persistent: true, capacity });

describe("a plan of databases", () => {
  // Shows: docs/databases-api.md#rules-of-a-creation: 400: plan by type and profile: `db-*`
  // Shows: docs/databases-api.md#rules-of-a-creation: 400: engine, version, instances and storage that
  it.each([
    ["postgresql", {}, []],
    ["postgresql", { instances: 3, storage: storage(250) }, []],
    ["postgresql", { plan: "db-free", storage: storage(1) }, []],
    ["postgresql", { plan: "db-free", instances: 2, storage: storage(1) }, ["config.instances"]],
    ["postgresql", { plan: "db-free", storage: storage(2) }, ["config.storage.capacity"]],
    ["postgresql", { plan: "cache-basic" }, ["plan"]],
    ["postgresql", { version: "14", instances: 4 }, ["config.version", "config.instances"]],
    ["mariadb", {}, []],
    ["mariadb", { plan: "db-free" }, ["plan"]],
    ["mariadb", { instances: 2 }, ["config.instances"]],
    ["clickhouse", {}, []],
    ["clickhouse", { instances: 2 }, ["config.instances"]],
    ["clickhouse", { plan: "analytics-premium", instances: 2 }, []],
    ["clickhouse", { plan: "analytics-business", instances: 3 }, []],
    ["clickhouse", { plan: "analytics-business", instances: 4 }, ["config.instances"]],
    ["valkey", {}, []],
    ["valkey", { plan: "cache-free", profile: "cache", storage: undefined }, []],
    ["valkey", { plan: "queue-free", profile: "queue", storage: storage(2) }, ["config.storage.capacity"]],
    ["valkey", { plan: "analytics-basic" }, ["plan"]],
  ] as const)("refuses of %s with %j what it does not offer", (type, change, fields) => {
    expect(refused(databaseSpec(type, change as Partial<ProjectSpec>))).toEqual(fields);
  });

  // Shows: docs/databases-api.md#rules-of-a-creation: 400 `PAYMENT_MODE_INVALID`: a payment mode that
  it("refuses a payment mode that the engine is not sold by", () => {
    const engines = catalog.engines.map((engine) => ({ ...engine, paymentModes: ["monthly" as const] }));
    const spec = databaseSpec("postgresql");
    expect(refused(spec, { ...catalog, engines })).toEqual(["payment_mode PAYMENT_MODE_INVALID"]);
    expect(refused({ ...spec, paymentMode: "monthly" }, { ...catalog, engines })).toEqual([]);
  });
});

const FIRST = "2026-01-01T00:00:00.000Z";
const SECOND = "2026-01-02T00:00:00.000Z";
const CHANGED = "2026-01-03T00:00:00.000Z";

function project(change: Partial<Project["spec"]>, status?: ProjectStatus): Project {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "pshop", namespace: "slipway-org-acme" },
    spec: databaseSpec("clickhouse", change),
    ...(status === undefined ? {} : { status }),
  };
}
const shown = (change: Partial<Project["spec"]>, status?: ProjectStatus) => {
  const one = project(change, status);
  return [planInForce(one), planChangeOf(one, CHANGED)];
};
const premium = { plan: "analytics-premium", planRequestedAt: FIRST };
const inProgress = { status: "in_progress", toPlan: "analytics-premium", startedAt: FIRST } as const;
const failed = {
  ...inProgress,
  status: "failed",
  fromPlan: "analytics-basic",
  requestedAt: FIRST,
  finishedAt: SECOND,
} as const;
const running = { status: "in_progress", to_plan: "analytics-premium", started_at: FIRST };

describe("the plan of a ClickHouse project", () => {
  it("is what it was created on, and nothing changes", () => {
    expect(shown({})).toEqual(["analytics-basic", undefined]);
    expect(shown({}, { plan: "analytics-basic" })).toEqual(["analytics-basic", undefined]);
  });

  // Shows: docs/databases-api.md#change-of-plan: of ClickHouse: `plan` is the one in force
  it("changes from the moment of the request, and the one before is in force", () => {
    expect(shown(premium, { plan: "analytics-basic" })).toEqual(["analytics-basic", running]);
    const reported = { ...inProgress, requestedAt: FIRST };
    expect(shown(premium, { plan: "analytics-basic", planChange: reported })).toEqual([
      "analytics-basic",
      running,
    ]);
  });

  it("is requested by kubectl, too, without a time", () => {
    const change = { ...running, started_at: CHANGED };
    const requested = shown({ plan: "analytics-premium" }, { plan: "analytics-basic" });
    expect(requested).toEqual(["analytics-basic", change]);
    const status = { plan: "analytics-basic", planChange: inProgress };
    expect(shown({ plan: "analytics-premium" }, status)).toEqual(["analytics-basic", running]);
  });

  it("is in force once the operator says so", () => {
    expect(shown(premium, { plan: "analytics-premium" })).toEqual(["analytics-premium", undefined]);
  });

  // Shows: docs/databases-api.md#change-of-plan: a change that fails leaves the previous plan: `failed`
  it("stays on the one before when the change fails", () => {
    expect(shown(premium, { plan: "analytics-basic", planChange: failed })).toEqual([
      "analytics-basic",
      { status: "failed", from_plan: "analytics-basic", to_plan: "analytics-premium", finished_at: SECOND },
    ]);
  });

  // Shows: docs/databases-api.md#change-of-plan: the next request clears a failure; without a change
  it("is cleared of a failure by the next request, for the same plan or back to the one in force", () => {
    const status = { plan: "analytics-basic", planChange: failed };
    const again = { ...running, started_at: SECOND };
    expect(shown({ ...premium, planRequestedAt: SECOND }, status)).toEqual(["analytics-basic", again]);
    const back = shown({ plan: "analytics-basic", planRequestedAt: SECOND }, status);
    expect(back).toEqual(["analytics-basic", undefined]);
  });
});

it("the plan of every other type is what the spec says, and has no plan_change", () => {
  const one = { ...project({}), spec: databaseSpec("postgresql", { plan: "db-business" }) };
  const status = { plan: "db-premium", planChange: failed };
  expect([planInForce({ ...one, status }), planChangeOf({ ...one, status }, CHANGED)]).toEqual([
    "db-business",
    undefined,
  ]);
});
