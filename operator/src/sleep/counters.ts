/** Reads how many requests the ingress has answered for each Service, from Traefik's metrics. */

import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { request } from "undici";

/** Requests by the name that Traefik has for a Service. */
export type Counters = ReadonlyMap<string, number>;

/** Longest page that is read, in bytes, and longest time for it. */
const MAX_BYTES = 64 * 1024 * 1024;
const TIMEOUT_MS = 10_000;

const LINE = /^traefik_service_requests_total\{(?:[^}]*,)?service="([^"]*)@kubernetes"[^}]*\} ([0-9.e+]+)$/;

/** Adds up the lines of a page, over methods, codes and protocols. Other lines, and Services of others, are passed over. */
export function addLine(counters: Map<string, number>, line: string): void {
  const [, service = "", value = ""] = LINE.exec(line) ?? [];
  if (service.startsWith("slipway-org-")) {
    counters.set(service, (counters.get(service) ?? 0) + Number(value));
  }
}

/** @throws Error when the page cannot be read, is too long, or has not ended in time */
export async function readCounters(url: string, signal: AbortSignal): Promise<Counters> {
  const ending = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const { statusCode, body } = await request(url, { signal: ending });
  if (statusCode !== 200) {
    body.destroy();
    throw new Error(`the ingress answered ${statusCode} for its metrics`);
  }
  const counters = new Map<string, number>();
  for await (const line of createInterface({ input: Readable.from(bounded(body)) })) {
    addLine(counters, line);
  }
  return counters;
}

async function* bounded(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) {
      throw new Error("the metrics of the ingress are too long");
    }
    yield chunk;
  }
}

/** What Traefik calls the Services by which a project is reached: its own, and the activator's. */
export function serviceNames(namespace: string, ...services: readonly string[]): string[] {
  return services.map((service) => `${namespace}-${service}-http`.replaceAll(/-+/g, "-"));
}
