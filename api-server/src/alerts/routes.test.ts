import { readFileSync } from "node:fs";
import { type AlertRule, type Project, type ProjectType, parseCatalog } from "@slipway/crds";
import { expect, test } from "vitest";
import { requireMeasured } from "./routes.ts";

const shipped = parseCatalog(
  readFileSync(new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);
/** Plans with metrics that are without a tier. */
const untiered = {
  ...shipped,
  databasePlans: shipped.databasePlans.map((plan) => ({ ...plan, metrics: { access: "snapshot" as const } })),
};
const memory: AlertRule = { name: "memory", metric: "memory", threshold: 90 };
const failed: AlertRule = { name: "failed", metric: "failed_deployment" };

function codeOf(type: ProjectType, plan: string, catalog = shipped, alerts = [memory]): string {
  const resource = { metadata: { name: "pshop" }, spec: { type, plan, alerts } } as Project;
  try {
    requireMeasured(resource, { catalog: { current: catalog } });
  } catch (error) {
    return (error as { code: string }).code;
  }
  return "";
}

const REFUSED = "METRICS_NOT_AVAILABLE_FOR_PLAN";

// Shows: docs/alerts.md#over-v1: 402 `NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN`
test.each([
  ["postgresql", "db-basic", REFUSED, ""],
  ["postgresql", "db-premium", "", ""],
  ["mariadb", "db-basic", REFUSED, ""],
  ["mariadb", "db-premium", "", ""],
  ["valkey", "cache-basic", REFUSED, ""],
  ["valkey", "cache-premium", "", ""],
  ["clickhouse", "analytics-business", REFUSED, ""],
  ["http", "free", "NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN", "NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN"],
  ["worker", "basic", "", ""],
] as const)(
  "what is measured of %s on %s depends on the metrics of the plan",
  (type, plan, code, untieredCode) => {
    expect(codeOf(type, plan)).toBe(code);
    expect(codeOf(type, plan, untiered)).toBe(untieredCode);
    expect(codeOf(type, plan, shipped, [failed])).toBe("");
  },
);
