import { SpanKind } from "@opentelemetry/api";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeStore } from "../../test/kit/analytics/fake-store.ts";
import { TestCollector } from "../../test/kit/analytics/test-collector.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";

/** OpenTelemetry's own exporters, logs as JSON and spans as protobuf, against the collector as a process. */

let collector: TestCollector;
let store: FakeStore;
let logs: LoggerProvider;
let traces: TracerProvider;

beforeEach(async () => {
  collector = await TestCollector.open();
  store = await FakeStore.start();
  const to = (signal: string) => ({ url: `${collector.otlpUrl}/v1/${signal}` });
  const often = { maxExportBatchSize: 50, scheduledDelayMillis: 100 };
  logs = new LoggerProvider({
    processors: [new BatchLogRecordProcessor({ ...often, exporter: new OTLPLogExporter(to("logs")) })],
  });
  traces = new TracerProvider({
    spanProcessors: [new BatchSpanProcessor({ ...often, exporter: new OTLPTraceExporter(to("traces")) })],
  });
  await start();
});

afterEach(async () => {
  await collector.close();
  await Promise.all([logs.shutdown(), traces.shutdown()]);
  await store.stop();
});

async function start(): Promise<void> {
  collector.start({ SLIPWAY_ANALYTICS_URL: store.url });
  await eventually("the collector receives", () => collector.isReady(), 90_000);
}

const LATENCY_MS = 40;

/** A request that a gateway has answered; its number identifies it, also as the bytes of its answer. */
function attributesOf(number: number, project: string) {
  return {
    "http.request.method": "GET",
    "url.path": `/n/${number}`,
    "url.query": "secret=1",
    "http.response.status_code": 200,
    "http.response.body.size": number,
    "user_agent.original": "gateway's client",
    "client.address": "203.0.113.9",
    "server.address": "another.example.org",
    "k8s.namespace.name": "slipway-org-o1",
    "k8s.ingress.name": project,
  };
}

function log(number: number, project = "p1", end = Date.now()): void {
  const attributes = { ...attributesOf(number, project), "http.server.request.duration": LATENCY_MS / 1000 };
  logs.getLogger("gateway").emit({ timestamp: end, body: "access", attributes });
}

function span(number: number, project = "p1", end = Date.now()): void {
  const attributes = attributesOf(number, project);
  const options = { kind: SpanKind.SERVER, startTime: end - LATENCY_MS, attributes };
  const server = traces.getTracer("gateway").startSpan("GET", options);
  // What it asked of the project is the same request.
  traces
    .getTracer("gateway")
    .startSpan("GET", { ...options, kind: SpanKind.CLIENT })
    .end(end);
  server.end(end);
}

const flush = () => Promise.all([logs.forceFlush(), traces.forceFlush()]);

/** Rows of the store, as `[organization, project, at, status, …]`. */
const rows = () => store.rows.map((row) => JSON.parse(row) as unknown[]);
const numbers = () =>
  rows()
    .map((row) => Number(row[10]))
    .sort((a, b) => a - b);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

// Shows: docs/analytics.md#other-ingresses: OpenTelemetry's own exporters, of logs and of spans, lose
test("what an exporter has been acknowledged for is counted once, whatever becomes of the collector and the store", async () => {
  store.mood = () => "away";
  const end = Date.now();
  for (let number = 1; number <= 400; number += 1) {
    (number % 2 === 0 ? log : span)(number, "p1", end);
  }
  await flush();
  // All of it is on the disk: nothing else is left of it.
  await collector.kill("SIGKILL");
  // And what is sent while nobody listens is sent again by the exporters themselves.
  for (let number = 401; number <= 440; number += 1) {
    (number % 2 === 0 ? log : span)(number);
  }
  const flushed = flush();
  store.mood = () => "well";
  await start();
  await flushed;
  await eventually("all requests are in the store", () => store.rows.length >= 440, 90_000);
  expect(numbers()).toEqual(upTo(440));
  const [first] = rows().filter((row) => row[10] === 1);
  const [second] = rows().filter((row) => row[10] === 2);
  const at = ((end - LATENCY_MS) / 1000).toFixed(3);
  const common = ["o1", "p1", at, 200, "GET", "/n/:number"];
  expect(first).toEqual([...common, "/n/1", "gateway's client", "203.0.113.9", 0, 1, LATENCY_MS * 1000]);
  expect(second).toEqual([...common, "/n/2", "gateway's client", "203.0.113.9", 0, 2, LATENCY_MS * 1000]);
}, 240_000);

// Shows: docs/analytics.md#other-ingresses: a request of a project that is not known yet waits for it
test("a project that the cluster reports a little later is waited for, and another one's requests are dropped and counted", async () => {
  log(1, "p2");
  span(2, "p2");
  log(3);
  const flushed = flush();
  await new Promise((resolve) => setTimeout(resolve, 700));
  await collector.addProject("p2");
  await flushed;
  await eventually("all requests are in the store", () => store.rows.length >= 3, 90_000);
  expect(rows().map((row) => [row[1], row[10]])).toEqual(
    expect.arrayContaining([
      ["p2", 1],
      ["p2", 2],
      ["p1", 3],
    ]),
  );
  log(4, "p3");
  log(5);
  await flush();
  await eventually("what was sent with it", () => store.rows.length >= 4, 90_000);
  expect(numbers()).toEqual([1, 2, 3, 5]);
  expect(await collector.figure('slipway_collector_refused_lines_total{reason="unknown"}')).toBe(1);
}, 240_000);
