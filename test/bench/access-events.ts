import type { AccessEvent, Method } from "@slipway/analytics";

/** Requests to some projects over some time, the same ones every time. Pure. */

const METHODS: Method[] = ["GET", "GET", "GET", "POST", "PUT", "DELETE"];
const STATUSES = [200, 200, 200, 200, 200, 200, 201, 204, 301, 304, 404, 404, 500, 503];
const AGENTS = Array.from(
  { length: 12 },
  (_, one) => `Mozilla/5.0 (X11; Linux x86_64; rv:${100 + one}.0) Gecko/20100101`,
);

export interface Traffic {
  events: number;
  projects: number;
  /** First and last moment, in milliseconds since the epoch. */
  from: number;
  to: number;
}

export const projectName = (index: number): string => `p${String(index).padStart(19, "0")}`;
export const organizationName = (index: number): string => `o${String(index % 20).padStart(15, "0")}`;

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One batch of the traffic after the other, in the order of time. */
export function* batchesOf({ events, projects, from, to }: Traffic, size: number): Generator<AccessEvent[]> {
  const next = random(1);
  for (let start = 0; start < events; start += size) {
    const batch: AccessEvent[] = [];
    for (let at = start; at < Math.min(start + size, events); at++) {
      const project = Math.floor(next() * projects);
      const chosen = Math.floor(next() * 40);
      const item = Math.floor(next() * 5_000);
      batch.push({
        organization: organizationName(project),
        project: projectName(project),
        at: Math.floor(from + ((to - from) * at) / events),
        status: STATUSES[chosen % STATUSES.length] ?? 200,
        method: METHODS[chosen % METHODS.length] ?? "GET",
        route: `/api/resource-${chosen % 25}/:id`,
        path: `/api/resource-${chosen % 25}/${item}`,
        userAgent: AGENTS[item % AGENTS.length] ?? "",
        sourceIp: `198.51.${item % 8}.${item % 250}`,
        bytesReceived: item % 900,
        bytesSent: item * 7,
        latencyUs: Math.floor(500 * Math.exp(next() * next() * 7)),
      });
    }
    yield batch;
  }
}
