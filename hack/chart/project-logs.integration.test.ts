/** What the chart sets for the collector and the API server about projects' logs. */

import { join } from "node:path";
import { DEFAULT_LOG_DAYS } from "@slipway/crds";
import { expect, test } from "vitest";
import { chartDir, type Rendered, renderChart } from "./render.ts";

interface Workload {
  template: { spec: { containers: { env?: { name: string; value?: string }[] }[] } };
}

/** A variable of a workload's first container. */
function variableOf(objects: readonly Rendered[], workload: string, variable: string): string | undefined {
  const found = objects.find(
    ({ kind, metadata }) => ["DaemonSet", "Deployment"].includes(kind) && metadata.name === workload,
  );
  const { containers } = (found?.spec as Workload | undefined)?.template.spec ?? {};
  return containers?.[0]?.env?.find(({ name }) => name === variable)?.value;
}

const rendered = (sets: string[]): Promise<Rendered[]> =>
  renderChart(join(chartDir, "testdata/default/values.yaml"), ["analytics.enabled=true", ...sets]);

// Shows: docs/logs.md#what-is-kept: The store keeps rows for the longest `logDays` of all plans, and at least
test.each([
  // A project may be on a plan that is no longer in the catalog.
  ["of a plan that names fewer", 3, DEFAULT_LOG_DAYS],
  ["of a plan that names more", 40, 40],
])("lines of logs are kept for the days %s", async (_, logDays, kept) => {
  const catalog = ["catalog.currency=brl", `catalog.httpPlans[0].logDays=${logDays}`];
  const objects = await rendered(catalog);
  expect(variableOf(objects, "slipway-collector", "SLIPWAY_COLLECTOR_LOG_DAYS")).toBe(String(kept));
});

test("the API server searches logs where collectors keep them", async () => {
  const searched = async (sets: string[]) =>
    variableOf(await rendered(sets), "slipway-api-server", "SLIPWAY_ANALYTICS_LOGS");
  expect(await searched([])).toBe("true");
  expect(await searched(["analytics.collector.logs.enabled=false"])).toBeUndefined();
});
