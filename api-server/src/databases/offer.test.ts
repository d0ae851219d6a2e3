import { readFileSync } from "node:fs";
import { type ProjectSpec, parseCatalog } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { offerErrors } from "./offer.ts";

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
