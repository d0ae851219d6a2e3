import type { Counts, NamedCounts, StatusCounts, StoredEvent, Summary, Window } from "@slipway/analytics";

/** What is known of requests, as `/v1` shows it. Pure. */

export const windowView = ({ from, to }: Window) => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
  seconds: (to - from) / 1000,
});

export const countsView = (counts: Counts) => ({
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
