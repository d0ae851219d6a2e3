import { parseQuantity } from "@slipway/controller-runtime";
import { afterAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { createDatabase, databaseProject, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { acquireExclusive } from "./support/exclusive.ts";
import { untilServing } from "./support/ingress.ts";
import { metricHistory, pointsOf } from "./support/metrics.ts";
import { collectorPod } from "./support/network-analytics.ts";
import { createOrganization } from "./support/organization.ts";
import { killProcess } from "./support/process.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";

/** Metrics that stay: from real containers over the kubelet and the collector to `/v1`. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

const timeout = 900_000;
/** Two samples, which a rate needs, and the kubelet's own delay, on a busy machine. */
const within = { within: 240_000, every: 3_000 };
const hour = { range_seconds: "3600", resolution_seconds: "15" };

const instancesOf = async (id: string) => {
  const labelSelector = `slipway.dev/project=${id}`;
  const { items } = await cluster.core.listNamespacedPod({ namespace, labelSelector });
  return items.map(({ metadata, spec }) => ({ name: metadata?.name ?? "", node: spec?.nodeName ?? "" }));
};

/** Cores that an instance's own container may use. */
async function coresOf(name: string): Promise<number> {
  const { spec } = await cluster.core.readNamespacedPod({ namespace, name });
  const container = spec?.containers.find(({ name: own }) => own === "app");
  const limit = parseQuantity(container?.resources?.limits?.cpu);
  expect(limit).toBeDefined();
  return Number(limit) / 1e9;
}

// Shows: docs/metrics.md#what-is-promised: what an instance used is there after it is gone
test(
  "what an instance used is in steps over a killed collector, and after the instance is gone",
  async () => {
    const { project_id: id, domain } = await createProject(call, httpProject(uniqueName("metrics")));
    made.push(id);
    await untilStatus(call, id, "running");
    await untilServing(domain);
    const [{ name: instance, node } = { name: "", node: "" }] = await instancesOf(id);
    // Neither a flood of its log nor all of a processor: other files run beside this one.
    const load = traffic(domain);
    const release = await acquireExclusive("collector");
    try {
      const busy = async () =>
        pointsOf(await metricHistory(call, id, hour), instance).filter(({ cpu }) => (cpu ?? 0) > 0.001);
      await eventually(async () => expect((await busy()).length).toBeGreaterThan(1), within);
      const before = await busy();
      for (let kill = 0; kill < 3; kill += 1) {
        await eventually(async () => killProcess(await collectorPod(node), "dist/collector.js"));
      }
      await eventually(async () => {
        const last = before.at(-1)?.at ?? "";
        expect((await busy()).filter(({ at }) => at > last).length).toBeGreaterThan(1);
      }, within);
    } finally {
      release();
      await load.stop();
    }
    const history = await metricHistory(call, id, hour);
    const points = pointsOf(history, instance);
    // No more than its container may use: a counter in another unit would be. That none counts twice is shown where every sample is known.
    expect(Math.max(...points.map(({ cpu }) => cpu ?? 0))).toBeLessThan(1.2 * (await coresOf(instance)));
    expect(points.every(({ memory }) => memory === null || memory > 0)).toBe(true);
    expect(points.some(({ memory }) => (memory ?? 0) > 1_000_000)).toBe(true);
    expect(points.some(({ received_bytes_per_second: received }) => (received ?? 0) > 0)).toBe(true);
    expect(points.at(-1)?.restarts).toBe(0);

    await call("POST", `/v1/project/${id}/pause`);
    await eventually(async () => expect(await instancesOf(id)).toEqual([]));
    const after = pointsOf(await metricHistory(call, id, hour), instance);
    expect(after.length).toBeGreaterThanOrEqual(points.length - 1);
    const one = await call<{ cpu: number | null }>(
      "GET",
      `/v1/project/${id}/metrics?range_seconds=3600&instance=${instance}`,
    );
    expect([one.status, (one.body as unknown as { data: { cpu: null } }).data.cpu]).toEqual([200, null]);
  },
  timeout,
);

test(
  "a database's history has its volume, and no other organization's key finds it",
  async () => {
    const database = await createDatabase(
      call,
      databaseProject("db-premium", { type_project: "postgresql", version: "17" }),
    );
    made.push(database.id);
    await untilReady(database);
    // A kubelet measures volumes once a minute.
    await eventually(async () => {
      const points = pointsOf(await metricHistory(call, database.id, hour), `${database.id}-0`);
      expect(points.some(({ cpu }) => cpu !== null)).toBe(true);
      expect(points.some(({ volume_used_bytes: used }) => (used ?? 0) > 0)).toBe(true);
    }, within);
    const stranger = await createOrganization(uniqueName("strangers"));
    const path = `/v1/project/${database.id}/metrics?range_seconds=3600`;
    expect((await apiClient(stranger.api_key)("GET", path)).status).toBe(404);
  },
  timeout,
);
