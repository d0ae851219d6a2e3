import { request } from "undici";
import { expect } from "vitest";
import type { apiClient } from "./api.ts";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { describeInstances } from "./ingress.ts";
import { stack } from "./stack.ts";

type Call = ReturnType<typeof apiClient>;

/** A request whose every figure is known. */
export interface Known {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly route: string;
  readonly status: number;
  readonly userAgent: string;
  readonly body: string;
}

/** A request that was answered. */
export interface Answered extends Known {
  readonly bytesSent: number;
}

/** Sends a request through the ingress. @throws when it is not answered, or with another status */
export async function send(domain: string, known: Known): Promise<Answered> {
  const answer = await request(`${stack.ingressUrl}${known.path}?token=not-to-be-kept`, {
    method: known.method,
    headers: { host: domain, "user-agent": known.userAgent },
    body: known.method === "POST" ? known.body : undefined,
  });
  const content = await answer.body.bytes();
  if (answer.statusCode !== known.status) {
    const body = Buffer.from(content).toString("utf8").slice(0, 200);
    const found = `${answer.statusCode} "${body}" in place of ${known.status}`;
    throw new Error(`${known.path}: ${found}\n${await describeInstances(domain)}`);
  }
  return { ...known, bytesSent: content.length };
}

/** Does work for each item, some concurrently. */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const left = [...items];
  const done: R[] = [];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) {
      done.push(await work(item));
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return done;
}

export interface Counts {
  readonly requests: number;
  readonly bytes_received: number;
  readonly bytes_sent: number;
  readonly avg_latency_ms: number | null;
  readonly p95_latency_ms: number | null;
}

export interface Summary {
  readonly summary: Counts;
  readonly status_classes: Readonly<Record<string, number>>;
}

export interface Item extends Counts {
  readonly status_code?: string;
  readonly route?: string;
  readonly user_agent?: string;
  readonly source_ip?: string;
  readonly status_codes?: Readonly<Record<string, number>>;
  readonly routes?: Readonly<Record<string, number>>;
  readonly user_agents?: Readonly<Record<string, number>>;
}

export interface RequestEvent {
  readonly timestamp: string;
  readonly method: string;
  readonly path: string;
  readonly route: string;
  readonly status_code: string;
  readonly user_agent: string;
  readonly source_ip: string;
  readonly bytes_received: number;
  readonly bytes_sent: number;
  readonly latency_ms: number;
}

/** The API's counts of a project's requests, from a time on. */
export function networkAnalytics(call: Call, project: string, from: Date) {
  const base = `/v1/project/${project}/metrics/network`;
  const window = `from=${from.toISOString()}`;
  return {
    async summary(): Promise<Summary> {
      const read = await call<Summary>("GET", `${base}/summary?${window}`);
      expect(read.status, JSON.stringify(read.body)).toBe(200);
      return read.body.data as Summary;
    },
    /** All pages of a list. */
    async all<T>(name: string): Promise<T[]> {
      const to = new Date().toISOString();
      const items: T[] = [];
      for (let page = 1; ; page += 1) {
        const path = `${base}/${name}?${window}&to=${to}&limit=50&page=${page}`;
        const read = await call<{ data: T[]; pagination: { total_pages: number } }>("GET", path);
        expect(read.status, JSON.stringify(read.body)).toBe(200);
        const { data, pagination } = read.body.data as { data: T[]; pagination: { total_pages: number } };
        items.push(...data);
        if (page >= pagination.total_pages) {
          return items;
        }
      }
    },
    /** Waits until so many requests are counted. */
    untilCounted(count: number, within = 60_000): Promise<void> {
      return eventually(async () => expect((await this.summary()).summary.requests).toBe(count), {
        within,
        every: 200,
      });
    },
  };
}

export const collectorNamespace = "slipway-collector";

/** Name of the collector's pod on a node; without one on the embedded cluster's only node. */
export async function collectorPod(node?: string): Promise<string> {
  const labelSelector = "app.kubernetes.io/name=slipway-collector";
  const pods = await cluster.core.listNamespacedPod({ namespace: collectorNamespace, labelSelector });
  const pod = pods.items.find(
    ({ spec, status }) => status?.phase === "Running" && spec?.nodeName === (node ?? spec?.nodeName),
  );
  if (!pod?.metadata?.name) {
    throw new Error("no collector runs");
  }
  return pod.metadata.name;
}
