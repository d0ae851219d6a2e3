import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { recordFigures } from "../../hack/testing/figures.ts";
import { isLong } from "../kit/long.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  readProject,
  uniqueName,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { type FailedRequest, type MixedRequest, mixedLoad } from "./support/load.ts";
import { killOperator, leader, systemNamespace } from "./support/operator.ts";
import { admin } from "./support/organization.ts";
import { connectionsTo, openSockets, processOf, unlistedSockets } from "./support/process.ts";
import { stack } from "./support/stack.ts";

// The load of the specification for 60 s with --long; a fifth of it for 20 s otherwise.
const RATE = isLong ? 500 : 100;
const SECONDS = isLong ? 60 : 20;

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

/** Names of a component's pods that serve and are not leaving. */
async function podsOf(component: string): Promise<string[]> {
  const labelSelector = `app.kubernetes.io/name=${component}`;
  const { items } = await cluster.core.listNamespacedPod({ namespace: systemNamespace, labelSelector });
  return items
    .filter(({ metadata, status }) => {
      const ready = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
      return ready && metadata?.deletionTimestamp === undefined;
    })
    .map(({ metadata }) => metadata?.name ?? "");
}

const bothServe = (component: string, without?: string): Promise<string[]> =>
  eventually(
    async () => {
      const pods = await podsOf(component);
      expect(pods).toHaveLength(2);
      expect(pods).not.toContain(without);
      return pods;
    },
    { every: 200 },
  );

/** Evicts a pod as a node's drain does: the disruption budget applies. */
const evict = (name: string): Promise<unknown> =>
  eventually(() =>
    cluster.core.createNamespacedPodEviction({
      name,
      namespace: systemNamespace,
      body: { metadata: { name, namespace: systemNamespace } },
    }),
  );

async function secondKey(): Promise<string> {
  const grant = ["--grant", "* on project:*"];
  const { api_key } = await admin<{ api_key: string }>(
    "api-key",
    "create",
    "--organization",
    stack.organization,
    ...grant,
  );
  return api_key;
}

/**
 * Reads with the key until both API servers know it, all but surely: where the ledger is slow, a key that a process does not know is
 * answered 503, and one that it knows is answered as before.
 */
const untilKnown = (key: string): Promise<void> =>
  eventually(async () => {
    const read = apiClient(key);
    const answers = await Promise.all(Array.from({ length: 8 }, () => read("GET", "/v1/project/plans")));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
  });

/** Shares of a thousand; each stays below its rate limit times the scale of the tests, 100. */
function mix(ids: readonly string[], keys: readonly string[]): (index: number) => MixedRequest {
  return (index) => {
    const id = ids[index % ids.length] ?? "";
    const apiKey = keys[index % keys.length] ?? "";
    // Steps through the thousand in an order that mixes the kinds.
    const share = (index * 617) % 1000;
    const get = (kind: string, path: string): MixedRequest => ({ kind, method: "GET", path, apiKey });
    if (share < 280) {
      return get("read", `/v1/project/${id}`);
    }
    if (share < 650) {
      return get("list", `/v1/project?limit=10&page=${(index % 2) + 1}`);
    }
    if (share < 780) {
      return get("plans", "/v1/project/plans");
    }
    if (share < 900) {
      return get("storage plans", "/v1/project/storage/plans");
    }
    if (share < 950) {
      return get("envs", `/v1/project/${id}/envs`);
    }
    if (share < 980) {
      return get("deployments", `/v1/project/${id}/historic/deployments`);
    }
    const description = `changed ${index} times`;
    return {
      kind: "describe",
      method: "PATCH",
      path: `/v1/project/${id}/description`,
      apiKey,
      body: { description },
    };
  };
}

/** When a process was signalled to stop, and when it had ended, in milliseconds of this process's monotonic clock. */
interface Stopped {
  readonly from: number;
  readonly gone: number;
}

interface Stop {
  readonly how: string;
  readonly stop: (pod: string) => Promise<unknown>;
  /** Whether requests that the process held may be lost. */
  readonly isKill: boolean;
}

/**
 * Whether a process held the request when it died: how many those are depends on how busy the machine is. Until the kernel has
 * taken a killed process apart, its sockets take requests that nobody will answer; and until the ingress has observed that its
 * connections to the process are closed, it writes requests to them, which it then does not send to another.
 */
const wasHeld = ({ sentAt, endedAt }: FailedRequest, stops: readonly Stopped[]): boolean =>
  stops.some(({ from, gone }) => sentAt <= gone && from <= endedAt);

async function ingressProcess(): Promise<number> {
  const { items } = await cluster.core.listNamespacedPod({ namespace: "slipway-ingress" });
  return processOf(items[0]?.metadata?.name ?? "", "/traefik");
}

/** Kills a pod's API server; resolves once the process has ended, and the ingress has closed its connections to it. */
async function killApiServer(pod: string): Promise<void> {
  const { status } = await cluster.core.readNamespacedPod({ name: pod, namespace: systemNamespace });
  const [id, ingress] = await Promise.all([processOf(pod, "dist/api-server.js"), ingressProcess()]);
  const connections = () => connectionsTo(ingress, status?.podIP ?? "");
  const [before, others] = await Promise.all([connections(), unlistedSockets(ingress)]);
  expect(before.size).toBeGreaterThan(0);
  process.kill(id, "SIGKILL");
  while (existsSync(`/proc/${id}`)) {
    await sleep(1);
  }
  // Also those that the kernel accepted until it had taken the process apart; many of them it has reset.
  const reset = [...(await unlistedSockets(ingress))].filter((inode) => !others.has(inode));
  const ended = [...before, ...(await connections()), ...reset];
  for (let open = await openSockets(ingress); ended.some((inode) => open.has(inode)); ) {
    await sleep(1);
    open = await openSockets(ingress);
  }
}

const drain: Stop = { how: "drained", stop: evict, isKill: false };
const kill: Stop = { how: "killed", stop: killApiServer, isKill: true };
/** One of each, or with --long both of each kind. */
const stops: readonly (readonly Stop[])[] = isLong
  ? [
      [drain, drain],
      [kill, kill],
    ]
  : [[drain, kill]];
const inWords = (each: readonly Stop[]): string => each.map(({ how }) => how).join(" and ");

describe("two API servers and two operators", () => {
  // Shows: docs/applications.md#conventions: no answer is lost with several replicas, nor when one stops
  test.each(stops.map((each) => ({ how: inWords(each), each })))(
    `answer ${RATE} mixed requests a second for ${SECONDS} s, API servers being $how, and lose none but what a killed process held`,
    { timeout: 400_000 },
    async ({ each }) => {
      const operators = await bothServe("slipway-operator");
      const apiServers = await bothServe("slipway-api-server");
      const ids: string[] = [];
      for (let i = 0; i < 5; i += 1) {
        const envs = [{ name: "GREETING", value: "hello" }];
        ids.push((await createProject(call, httpProject(uniqueName("mixed"), { envs }))).project_id);
      }
      made.push(...ids);
      const keys = [stack.apiKey, await secondKey(), await secondKey()];
      await Promise.all(keys.map(untilKnown));
      const load = mixedLoad({ rate: RATE, seconds: SECONDS, next: mix(ids, keys) });

      const killed: Stopped[] = [];
      const stopAll = async (): Promise<void> => {
        for (const pod of operators) {
          await sleep((SECONDS * 1000) / 10);
          await killOperator(pod);
        }
        for (const [index, { stop, isKill }] of each.entries()) {
          await sleep((SECONDS * 1000) / 10);
          const from = performance.now();
          await stop(apiServers[index] ?? "");
          if (isKill) {
            killed.push({ from, gone: performance.now() });
          }
          // Until Kubernetes has observed its end.
          await sleep(3000);
          await bothServe("slipway-api-server");
        }
      };
      const [report] = await Promise.all([load, stopAll()]);
      await recordFigures("failover", "the API, whose servers are stopped and killed one after the other", {
        "requests a second": RATE,
        seconds: SECONDS,
        "requests lost that a killed server held": report.failed.length,
        "ms at p50 of reads": report.reads.p50,
        "ms at p99": report.reads.p99,
      });
      const lost = report.failed.filter((request) => !wasHeld(request, killed));
      expect(lost, `killed: ${JSON.stringify(killed)}`).toEqual([]);

      // And everything continues: a leader leads, and the projects are unchanged.
      await eventually(leader);
      for (const id of ids) {
        await eventually(async () => expect((await readProject(call, id)).status).toBe("running"));
      }
    },
  );

  // Shows: docs/applications.md#conventions: a write is read afterwards, on either replica
  test.skipIf(!isLong)("let a client read on either what it wrote through the other (--long)", async () => {
    const { project_id: id } = await createProject(
      call,
      httpProject(uniqueName("read"), { exposure: "private" }),
    );
    made.push(id);
    for (let i = 0; i < 100; i += 1) {
      const description = `written ${i} times`;
      expect((await call("PATCH", `/v1/project/${id}/description`, { description })).status).toBe(200);
      // Connections are spread over both: six reads meet each of them, all but surely.
      const reads = await Promise.all(Array.from({ length: 6 }, () => readProject(call, id)));
      expect(reads.map((read) => read.description)).toEqual(Array(6).fill(description));
    }
  });
});
