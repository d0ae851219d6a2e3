import {
  type Counts,
  MOST_NAMED,
  type NamedCounts,
  OTHER,
  type StatusCounts,
  type StoredEvent,
  type Summary,
  type Window,
} from "@slipway/analytics";
import { z } from "zod";

/** Schemas of answers, for the OpenAPI document and the tests. */

const number = z.int().min(0);
const latency = z.number().min(0).nullable();

export const counts = {
  requests: number,
  bytes_received: number.describe("Of requests' bodies."),
  bytes_sent: number.describe("Of answers' bodies."),
  avg_latency_ms: latency.describe("Mean time to the answer's end; null without requests."),
  p95_latency_ms: latency.describe(
    "The ceil(0.95 · n)th of the n times in ascending order, within 1 %; null without requests.",
  ),
};

export const shares = (of: string) =>
  z
    .record(z.string(), number)
    .describe(`Requests by ${of}: the ${MOST_NAMED} with the most, and the others together under ${OTHER}.`);

const byStatus = z.record(z.string(), number).describe("Requests by status.");

export const summarySchema = z.object({
  project_id: z.string(),
  window: z.object({
    from: z.string().describe("First moment of the window."),
    to: z.string().describe("First moment after it."),
    seconds: z.number().min(0),
  }),
  summary: z.object(counts),
  status_classes: z.object({ "2xx": number, "3xx": number, "4xx": number, "5xx": number }),
});

export const statusCodeItem = z.object({
  status_code: z.string(),
  requests: number,
  user_agents: shares("user agent"),
  routes: shares("route"),
  bytes_received: counts.bytes_received,
  bytes_sent: counts.bytes_sent,
  avg_latency_ms: counts.avg_latency_ms,
  p95_latency_ms: counts.p95_latency_ms,
});

export const routeItem = z.object({
  route: z.string().describe("Path in which what names single things is replaced."),
  status_codes: byStatus,
  ...counts,
});
export const userAgentItem = z.object({
  user_agent: z.string().describe("Empty where none was sent."),
  status_codes: byStatus,
  ...counts,
});
export const sourceIpItem = z.object({ source_ip: z.string(), status_codes: byStatus, ...counts });

export const requestEventItem = z.object({
  timestamp: z.string().describe("When the request began."),
  method: z.string(),
  path: z.string().describe("Without its query."),
  route: z.string(),
  status_code: z.string(),
  user_agent: z.string(),
  source_ip: z.string(),
  bytes_received: number,
  bytes_sent: number,
  latency_ms: z.number().min(0),
});

/** One page of a list. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({
    data: z.array(item),
    pagination: z.object({
      page: z.int().min(1),
      limit: z.int().min(1),
      total: z.int().min(0),
      total_pages: z.int().min(0),
    }),
  });

/** What is known of requests, as `/v1` shows it. Pure. */

const windowView = ({ from, to }: Window) => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
  seconds: (to - from) / 1000,
});

const countsView = (counts: Counts) => ({
  requests: counts.requests,
  bytes_received: counts.bytesReceived,
  bytes_sent: counts.bytesSent,
  avg_latency_ms: counts.avgLatencyMs,
  p95_latency_ms: counts.p95LatencyMs,
});

export const summaryView = (projectId: string, window: Window, summary: Summary) => ({
  project_id: projectId,
  window: windowView(window),
  summary: countsView(summary),
  status_classes: {
    "2xx": summary.classes[2],
    "3xx": summary.classes[3],
    "4xx": summary.classes[4],
    "5xx": summary.classes[5],
  },
});

export const statusView = (item: StatusCounts) => ({
  status_code: String(item.status),
  user_agents: item.userAgents,
  routes: item.routes,
  ...countsView(item),
});

export const namedView = (key: "route" | "user_agent" | "source_ip") => (item: NamedCounts) => ({
  [key]: item.name,
  status_codes: item.statusCodes,
  ...countsView(item),
});

export const eventView = (event: StoredEvent) => ({
  timestamp: new Date(event.at).toISOString(),
  method: event.method,
  path: event.path,
  route: event.route,
  status_code: String(event.status),
  user_agent: event.userAgent,
  source_ip: event.sourceIp,
  bytes_received: event.bytesReceived,
  bytes_sent: event.bytesSent,
  latency_ms: event.latencyMs,
});
