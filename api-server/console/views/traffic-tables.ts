import { projectPath } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { bytes, count, milliseconds } from "../lib/format.ts";
import { choice, fullMoment, pages, table, text } from "../lib/parts.ts";
import { withQuery } from "../lib/route.ts";
import { empty, type ProjectContext, refreshed } from "../lib/view.ts";

/** The fields that the items of every list of network analytics have, except those of events. */
interface Counted {
  requests: number;
  bytes_received: number;
  bytes_sent: number;
  avg_latency_ms: number | null;
  p95_latency_ms: number | null;
  status_code?: string;
  route?: string;
  user_agent?: string;
  source_ip?: string;
}

interface RequestEvent {
  timestamp: string;
  method: string;
  path: string;
  status_code: string;
  source_ip: string;
  user_agent: string;
  latency_ms: number;
}

interface List<Item> {
  data: Item[];
  pagination: { page: number; limit: number; total: number; total_pages: number };
}

const LISTS = [
  ["routes", "Routes", "Route"],
  ["status-codes", "Status codes", "Status"],
  ["user-agents", "User agents", "User agent"],
  ["source-ips", "Source addresses", "Address"],
  ["request-events", "Single requests", "Request"],
] as const;
const PER_PAGE = 10;
const POLL_INTERVAL_MS = 15_000;

/** The requests of a range by route, code, agent or address, or one by one. */
export function breakdown({ api, signal, route }: ProjectContext, seconds: number): HTMLElement {
  const [kind, name, one] = LISTS.find(([each]) => each === route.query.get("by")) ?? LISTS[0];
  const page = Math.max(1, Number.parseInt(route.query.get("page") ?? "", 10) || 1);
  const path = projectPath(route.project, "metrics", "network", kind);
  const query = { range_seconds: seconds, page, limit: PER_PAGE };
  const place = h("div", {});
  refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => (await api.get<List<Counted | RequestEvent>>(path, query, signal)).data,
      show: ({ data, pagination }) =>
        data.length === 0
          ? empty("No requests in this time")
          : [
              kind === "request-events"
                ? table(name, eventColumns, data as RequestEvent[])
                : table(name, countedColumns(one), data as Counted[]),
              h(
                "div",
                { class: "foot" },
                h("span", { class: "quiet" }, `${count(pagination.total)} in all`),
                pages(page, pagination.total_pages, (to) => withQuery(route, { page: String(to) })),
              ),
            ],
    },
    { signal },
  );
  return h(
    "section",
    { class: "card flush" },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, name),
      choice(
        "By",
        LISTS.map(([value, label]) => [value, label] as const),
        kind,
        (by) => {
          location.hash = withQuery(route, { by, page: undefined });
        },
      ),
    ),
    place,
  );
}

const nameOf = (item: Counted) => item.route ?? item.user_agent ?? item.source_ip ?? item.status_code ?? "";

const countedColumns = (name: string) => [
  { name, cell: (item: Counted) => h("code", { class: "long" }, text(nameOf(item)) || "(none)") },
  { name: "Requests", cell: (item: Counted) => count(item.requests), isNumber: true as const },
  { name: "Mean", cell: (item: Counted) => milliseconds(item.avg_latency_ms), isNumber: true as const },
  { name: "p95", cell: (item: Counted) => milliseconds(item.p95_latency_ms), isNumber: true as const },
  { name: "Received", cell: (item: Counted) => bytes(item.bytes_received), isNumber: true as const },
  { name: "Sent", cell: (item: Counted) => bytes(item.bytes_sent), isNumber: true as const },
];

const eventColumns = [
  { name: "When", cell: (one: RequestEvent) => fullMoment(one.timestamp) },
  {
    name: "Request",
    cell: (one: RequestEvent) => h("code", { class: "long" }, `${one.method} ${text(one.path)}`),
  },
  { name: "Code", cell: (one: RequestEvent) => one.status_code },
  { name: "Latency", cell: (one: RequestEvent) => milliseconds(one.latency_ms), isNumber: true as const },
  { name: "From", cell: (one: RequestEvent) => h("code", {}, one.source_ip) },
  {
    name: "Agent",
    cell: (one: RequestEvent) => h("small", { class: "long" }, text(one.user_agent) || "(none)"),
  },
];
