import type { OperationExamples } from "./example.ts";
import { EXAMPLE_ID } from "./id.ts";

const ok = (data: unknown): OperationExamples => ({ responses: { 200: { status: "success", data } } });

const page = (item: unknown): OperationExamples =>
  ok({ data: [item], pagination: { page: 1, limit: 5, total: 1, total_pages: 1 } });

const counts = {
  requests: 1_204,
  bytes_received: 88_120,
  bytes_sent: 9_414_233,
  avg_latency_ms: 18.204,
  p95_latency_ms: 63.104,
};
const status_codes = { "200": 1_180, "404": 24 };

export const networkExamples = {
  readNetworkSummary: ok({
    project_id: EXAMPLE_ID,
    window: { from: "2026-11-21T07:05:00.000Z", to: "2026-11-21T08:05:00.000Z", seconds: 3_600 },
    summary: counts,
    status_classes: { "2xx": 1_180, "3xx": 0, "4xx": 24, "5xx": 0 },
  }),
  listNetworkStatusCodes: page({
    status_code: "200",
    user_agents: { "curl/8.14.1": 1_204 },
    routes: { "/": 204, "/orders/:id": 1_000 },
    ...counts,
  }),
  listNetworkRoutes: page({ route: "/orders/:id", status_codes, ...counts }),
  listNetworkUserAgents: page({ user_agent: "curl/8.14.1", status_codes, ...counts }),
  listNetworkSourceIps: page({ source_ip: "192.0.2.7", status_codes, ...counts }),
  listNetworkRequestEvents: page({
    timestamp: "2026-11-21T08:04:59.120Z",
    method: "GET",
    path: "/orders/1042",
    route: "/orders/:id",
    status_code: "200",
    user_agent: "curl/8.14.1",
    source_ip: "192.0.2.7",
    bytes_received: 0,
    bytes_sent: 7_812,
    latency_ms: 17.902,
  }),
} as const satisfies Record<string, OperationExamples>;
