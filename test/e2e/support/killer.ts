import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { Answer, apiClient } from "./api.ts";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { collectorNamespace } from "./network-analytics.ts";
import { systemNamespace } from "./operator.ts";
import { killProcess } from "./process.ts";

/** Processes of the platform that are killed at random moments, and a client of `/v1` that copes with that. */

type Call = ReturnType<typeof apiClient>;

/** The platform's processes: the name of their pods, and how their command line ends. */
const PROCESSES = [
  { namespace: systemNamespace, name: "slipway-operator", words: "dist/operator.js" },
  { namespace: systemNamespace, name: "slipway-api-server", words: "dist/api-server.js" },
  { namespace: systemNamespace, name: "slipway-log-drains", words: "dist/log-drains.js" },
  { namespace: systemNamespace, name: "slipway-activator", words: "dist/activator.js" },
  { namespace: collectorNamespace, name: "slipway-collector", words: "dist/collector.js" },
];

/** Milliseconds between two kills. */
const BETWEEN = { least: 4_000, most: 12_000 };

const one = <T>(of: readonly T[]): T | undefined => of[Math.floor(Math.random() * of.length)];

/** Kills one of the platform's processes. @throws when it is not running, as one that was killed before */
async function killAny(): Promise<string> {
  const { namespace, name, words } = one(PROCESSES) as (typeof PROCESSES)[number];
  const labelSelector = `app.kubernetes.io/name=${name}`;
  const { items } = await cluster.core.listNamespacedPod({ namespace, labelSelector });
  await killProcess(one(items)?.metadata?.name ?? "", words);
  return name;
}

/**
 * Kills processes of the platform with SIGKILL, one after the other, at random moments until `stop`.
 * @returns `stop`, which gives how often each was killed
 */
export function startKiller(): { stop: () => Promise<Readonly<Record<string, number>>> } {
  const kills: Record<string, number> = Object.fromEntries(PROCESSES.map(({ name }) => [name, 0]));
  let isOver = false;
  const killing = (async () => {
    while (!isOver) {
      await sleep(BETWEEN.least + Math.random() * (BETWEEN.most - BETWEEN.least));
      const name = await killAny().catch(() => undefined);
      if (name !== undefined) {
        kills[name] = (kills[name] ?? 0) + 1;
      }
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await killing;
      return kills;
    },
  };
}

/** Answers of a platform whose processes end: the same request is to be sent again. */
export const UNAVAILABLE = [429, 500, 502, 503, 504];

/** The client, which sends a request again that was not answered, or answered by what was ending: for what may be repeated. */
export const repeating =
  (call: Call): Call =>
  <T>(...request: Parameters<Call>): Promise<Answer<T>> =>
    eventually(
      async () => {
        const answer = await call<T>(...request);
        expect(UNAVAILABLE, JSON.stringify(answer.body).slice(0, 300)).not.toContain(answer.status);
        return answer;
      },
      { every: 500 },
    );
