import { collectDefaultMetrics, type Registry } from "prom-client";

/**
 * How far apart the delay of the event loop is measured, in milliseconds, and so the least that `nodejs_eventloop_lag_*` reports. At 10,
 * as the client has it, the timer took half of the processor time of an idle process.
 */
const EVENT_LOOP_INTERVAL_MS = 100;

/** Adds the figures of the process itself, under the names that Prometheus's clients share. */
export function collectProcessMetrics(register: Registry): void {
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: EVENT_LOOP_INTERVAL_MS });
}
