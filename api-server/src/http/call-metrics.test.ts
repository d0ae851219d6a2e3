import { Counter, Histogram, Registry } from "prom-client";
import { expect, it } from "vitest";
import { CallMetrics } from "./call-metrics.ts";

const SECONDS = [0.0004, 0.001, 0.0011, 0.3, 29, 31];

it("shows just what prom-client's own counter and histogram would", async () => {
  const registry = new Registry();
  const calls = new CallMetrics(registry);
  const reference = new Registry();
  const requests = new Counter({
    name: "slipway_api_requests_total",
    help: "Requests answered, by operation and status class.",
    labelNames: ["operation", "class"],
    registers: [reference],
  });
  const duration = new Histogram({
    name: "slipway_api_request_duration_seconds",
    help: "Time to answer, by operation.",
    labelNames: ["operation"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [reference],
  });
  calls.operation("neverCalled");
  for (const [operation, status] of [
    ["read", 200],
    ["read", 404],
    ["list", 200],
    ["list", 503],
  ] as const) {
    for (const seconds of SECONDS) {
      calls.operation(operation).observe(status, seconds);
      requests.inc({ operation, class: `${String(status)[0]}xx` });
      duration.observe({ operation }, seconds);
    }
  }
  const linesOf = async (from: Registry) => (await from.metrics()).trim().split("\n").sort();
  expect(await linesOf(registry)).toEqual(await linesOf(reference));
  // Being read changes nothing.
  expect(await linesOf(registry)).toEqual(await linesOf(reference));
});

it("counts a status that is of no class in the durations alone", async () => {
  const registry = new Registry();
  new CallMetrics(registry).operation("read").observe(0, 1);
  const text = await registry.metrics();
  expect(text).toContain('slipway_api_request_duration_seconds_count{operation="read"} 1');
  expect(text).not.toContain("slipway_api_requests_total{");
});
