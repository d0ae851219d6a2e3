import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { acquireExclusive } from "./support/exclusive.ts";
import {
  collectorNamespace,
  collectorPod,
  type Item,
  networkAnalytics,
  type RequestEvent,
  send,
} from "./support/network-analytics.ts";
import { killProcess } from "./support/process.ts";

const kills = 20;
const awayMs = 600_000;
const call = apiClient();
const ids: string[] = [];
let release: (() => void) | undefined;
beforeAll(async () => {
  release = isLong ? await acquireExclusive("collector") : undefined;
}, 900_000);
afterAll(async () => {
  release?.();
  await deleteProjects(call, ids);
});

const store = { namespace: "slipway-system", name: "slipway-analytics" };

async function scaleStore(replicas: number): Promise<void> {
  const scale = await cluster.apps.readNamespacedStatefulSetScale(store);
  await cluster.apps.replaceNamespacedStatefulSetScale({ ...store, body: { ...scale, spec: { replicas } } });
}

/** Kills the process; it may be restarting after the previous kill. */
const killCollector = () =>
  eventually(async () => killProcess(await collectorPod(), "dist/collector.js"), {
    every: 200,
  });

/** Deletes the pod: the next one starts immediately, where a process that is killed repeatedly waits for minutes. */
const replaceCollector = () =>
  eventually(async () => {
    const name = await collectorPod();
    await cluster.core.deleteNamespacedPod({ namespace: collectorNamespace, name, gracePeriodSeconds: 1 });
  });

// Shows: docs/analytics.md#other-ingresses: every request counts once, whenever the collector is
test.skipIf(!isLong)(
  `the store away, then killed, and ${kills} kills of the collector under traffic: every request once (--long)`,
  async () => {
    const { project_id: id, domain } = await createProject(call, httpProject(uniqueName("faults")));
    ids.push(id);
    await untilStatus(call, id, "running");
    const from = new Date(Date.now() - 1_000);
    const network = networkAnalytics(call, id, from);
    let sent = 0;
    let isOver = false;
    const traffic = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        sent += 1;
        const path = `/n/${sent}`;
        await send(domain, {
          method: "GET",
          path,
          route: "/n/:number",
          status: 200,
          userAgent: "traffic",
          body: "",
        });
        await sleep(40);
      }
    });
    try {
      await network.untilCounted(0, 10_000).catch(() => undefined);
      await scaleStore(0);
      const gone = performance.now();
      const until = (ms: number) => sleep(Math.max(0, gone + ms - performance.now()));
      const moments = Array.from({ length: kills }, () => Math.random() * awayMs).sort((a, b) => a - b);
      for (const [kill, moment] of moments.entries()) {
        await until(moment);
        await (kill % 2 === 0 ? killCollector() : replaceCollector());
      }
      await until(awayMs);
      console.log(`${sent} requests while the store was away for ${Math.round(performance.now() - gone)} ms`);
      await scaleStore(1);
      await eventually(async () => {
        const pod = await cluster.core.readNamespacedPod({
          namespace: store.namespace,
          name: `${store.name}-0`,
        });
        expect(pod.status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("True");
      });
      // And once in the middle of its work.
      await killProcess(`${store.name}-0`, "main.ts");
      await killCollector();
      await sleep(2_000);
    } finally {
      isOver = true;
      await scaleStore(1);
    }
    await Promise.all(traffic);
    await network.untilCounted(sent, 120_000);
    const events = await network.all<RequestEvent>("request-events");
    const numbers = events.map(({ path }) => Number(path.slice("/n/".length))).sort((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: sent }, (_, index) => index + 1));
    const routes = await network.all<Item>("routes");
    expect(routes.map(({ route, requests }) => [route, requests])).toEqual([["/n/:number", sent]]);
  },
  1_200_000,
);
