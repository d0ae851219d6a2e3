/** Reads how many requests each collector has counted: one request for each node that has a pod of the ingress. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type Clock, ConcurrencyLimiter } from "@slipway/process";
import { z } from "zod";
import { httpGet } from "./http-get.ts";
import type { Reading, Round } from "./request-rates.ts";

/** Bytes of an answer: some 50 for each project that had a request in the last ten minutes. */
const LIMIT_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 3_000;
/** Requests under way. */
const CONCURRENCY = 16;

const answer = z.object({
  process: z.string().min(1).max(64),
  at: z.number(),
  complete: z.boolean(),
  counts: z.record(z.string(), z.int().min(0)),
});

type Pod = KubernetesObject & {
  spec?: { nodeName?: string; containers?: { name: string }[] };
  status?: { phase?: string; podIP?: string };
};

export interface CountsReaderOptions {
  client: Pick<KubeClient, "listAll">;
  clock: Clock;
  /** The ingress's containers, of which collectors read the access log. */
  ingress: { namespace: string; container: string };
  /** Where collectors run, and the port of their figures. */
  collectors: { namespace: string; port: number };
}

/** @throws KubeError when the apiserver does not answer; a collector that does not is missing in the round */
export async function readCounts(
  { client, clock, ingress, collectors }: CountsReaderOptions,
  signal: AbortSignal,
): Promise<Round> {
  const podsOf = (namespace: string, labelSelector?: string) =>
    // From the apiserver's cache: a pod more or less is seen in the next round.
    client.listAll<Pod>(resources.pods, { namespace, labelSelector, resourceVersion: "0", signal });
  const nodes = ingressNodes(await podsOf(ingress.namespace), ingress.container);
  const pods = await podsOf(collectors.namespace, "app.kubernetes.io/name=slipway-collector");
  const failures: { node: string; error: unknown }[] = [];
  const limiter = new ConcurrencyLimiter({ perKey: CONCURRENCY });
  const readings = await Promise.all(
    [...nodes].map((node) =>
      limiter.run("collectors", async () => {
        try {
          return await readCollector(collectorOn(node, pods), collectors.port, signal);
        } catch (error) {
          failures.push({ node, error });
          return undefined;
        }
      }),
    ),
  );
  const read = readings.filter((reading) => reading !== undefined);
  return {
    at: clock.monotonic(),
    readings: read,
    complete: nodes.size > 0 && failures.length === 0,
    failures,
  };
}

/** The nodes whose collector has the requests of a pod of the ingress. */
function ingressNodes(pods: readonly Pod[], container: string): Set<string> {
  const running = pods.filter(
    ({ spec, status }) =>
      status?.phase === "Running" && spec?.containers?.some(({ name }) => name === container),
  );
  return new Set(running.flatMap(({ spec }) => spec?.nodeName ?? []));
}

/** @throws Error when none runs there */
function collectorOn(node: string, pods: readonly Pod[]): string {
  const pod = pods.find(
    ({ metadata, spec, status }) =>
      spec?.nodeName === node &&
      status?.phase === "Running" &&
      status.podIP &&
      metadata?.deletionTimestamp === undefined,
  );
  if (!pod?.status?.podIP) {
    throw new Error("no collector runs on the node");
  }
  return pod.status.podIP;
}

async function readCollector(ip: string, port: number, signal: AbortSignal): Promise<Reading> {
  const host = ip.includes(":") ? `[${ip}]` : ip;
  const text = await httpGet(`http://${host}:${port}/requests`, {
    limitBytes: LIMIT_BYTES,
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  const { counts, ...reading } = answer.parse(JSON.parse(text));
  return { ...reading, counts: new Map(Object.entries(counts)) };
}
