import { projectPath, type Query } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { bytes, count, milliseconds, percent } from "../lib/format.ts";
import { tile, tiles } from "../lib/parts.ts";
import { plot } from "../lib/plot.ts";
import { withQuery } from "../lib/route.ts";
import { type Bucket, bucketsOf, type Range, ranges } from "../lib/series.ts";
import { empty, type ProjectContext, refreshed } from "../lib/view.ts";
import { breakdown } from "./traffic-tables.ts";

/** What `metrics/network/summary` answers. */
interface Summary {
  summary: {
    requests: number;
    bytes_received: number;
    bytes_sent: number;
    avg_latency_ms: number | null;
    p95_latency_ms: number | null;
  };
  status_classes: Partial<Record<string, number>>;
}

interface Bar extends Bucket {
  found: Summary;
}

const POLL_INTERVAL_MS = 10_000;
/** Concurrent requests: a browser has six connections, and a log may use one. */
const MAX_CONCURRENT = 3;

/** Requests, codes and latency of an HTTP project. */
export function traffic(context: ProjectContext): HTMLElement {
  const { api, signal, route } = context;
  const wanted = Number(route.query.get("range") ?? 3_600);
  const range = ranges.find(({ seconds }) => seconds === wanted) ?? ranges[1] ?? ranges[0];
  const load = async (query: Query) =>
    (await api.get<Summary>(projectPath(route.project, "metrics", "network", "summary"), query, signal)).data;

  const complete = new Map<number, Summary>();
  const place = h("div", { class: "stack" });
  refreshed(
    place,
    {
      intervalMs: Math.max(POLL_INTERVAL_MS, range.bucketSeconds * 100),
      load: async () => {
        // The whole range first: where the plan has no metrics, there are no more requests.
        const whole = await load({ range_seconds: range.seconds });
        return { whole, bars: await loadBars(range, complete, load) };
      },
      show: ({ whole, bars }) => show(whole, bars),
    },
    context,
  );
  const tabs = ranges.map(({ seconds, name }) =>
    h(
      "a",
      {
        href: withQuery(route, { range: String(seconds), page: undefined }),
        "aria-current": seconds === range.seconds ? "true" : undefined,
        "data-key": `range ${seconds}`,
      },
      name,
    ),
  );
  return h(
    "div",
    { class: "stack" },
    h("nav", { class: "segments", "aria-label": "Range" }, ...tabs),
    place,
    breakdown(context, range.seconds),
  );
}

/** Loads every bar that may still change, and the others once. */
async function loadBars(
  range: Range,
  complete: Map<number, Summary>,
  load: (query: Query) => Promise<Summary>,
): Promise<Bar[]> {
  const buckets = bucketsOf(range, Date.now());
  const pending = buckets.filter(({ from }) => !complete.has(from));
  const fresh = new Map<number, Summary>();
  const worker = async (): Promise<void> => {
    for (let bucket = pending.shift(); bucket !== undefined; bucket = pending.shift()) {
      const { from, to, isComplete } = bucket;
      const found = await load({ from: new Date(from).toISOString(), to: new Date(to).toISOString() });
      (isComplete ? complete : fresh).set(from, found);
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, worker));
  return buckets.flatMap((bucket) => {
    const found = complete.get(bucket.from) ?? fresh.get(bucket.from);
    return found === undefined ? [] : [{ ...bucket, found }];
  });
}

const CLASSES = [
  ["2xx", "ok"],
  ["3xx", "moved"],
  ["4xx", "client"],
  ["5xx", "server"],
] as const;

function show({ summary, status_classes: classes }: Summary, bars: readonly Bar[]): HTMLElement[] {
  const failures = classes["5xx"] ?? 0;
  const figures = tiles(
    tile("Requests", count(summary.requests)),
    tile(
      "Server errors",
      count(failures),
      summary.requests > 0 ? percent(failures / summary.requests) : undefined,
    ),
    tile("Latency, mean", milliseconds(summary.avg_latency_ms)),
    tile("Latency, p95", milliseconds(summary.p95_latency_ms)),
    tile("Received", bytes(summary.bytes_received)),
    tile("Sent", bytes(summary.bytes_sent)),
  );
  if (summary.requests === 0) {
    return [h("section", { class: "card" }, figures, empty("No requests in this time"))];
  }
  const common = { times: bars.map(({ from }) => from), barMs: (bars[0]?.to ?? 0) - (bars[0]?.from ?? 0) };
  const latency = (name: "avg_latency_ms" | "p95_latency_ms") =>
    bars.map(({ found }) => (found.summary.requests === 0 ? null : found.summary[name]));
  return [
    h("section", { class: "card" }, figures),
    h(
      "section",
      { class: "card" },
      plot({
        ...common,
        title: "Requests",
        as: "bars",
        series: CLASSES.map(([name, kind]) => ({
          name,
          kind,
          values: bars.map(({ found }) => found.status_classes[name] ?? 0),
        })),
        format: count,
      }),
    ),
    h(
      "section",
      { class: "card" },
      plot({
        ...common,
        title: "Latency",
        as: "lines",
        series: [
          { name: "mean", kind: "first", values: latency("avg_latency_ms") },
          { name: "p95", kind: "second", values: latency("p95_latency_ms") },
        ],
        format: milliseconds,
      }),
    ),
  ];
}
