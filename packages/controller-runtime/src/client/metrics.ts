import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { ReflectorEvents } from "../cache/reflector.ts";
import type { RequestObservation } from "./transport.ts";

/** Metrics of requests to the apiserver and of reflectors, in the shapes that client-go gives them. */
export interface KubeMetrics {
  /** For `KubeClientOptions.onRequest`. */
  onRequest(observation: RequestObservation): void;
  /** For `ReflectorOptions.events`. */
  reflector: Required<ReflectorEvents>;
}

/** Registers the metrics in a registry. @throws Error when it is called twice for one registry */
export function createKubeMetrics(registry: Registry): KubeMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: "rest_client_requests_total",
    help: "Number of HTTP requests, partitioned by status code, method, and host.",
    labelNames: ["code", "method", "host"],
    registers,
  });
  const duration = new Histogram({
    name: "rest_client_request_duration_seconds",
    help: "Request latency in seconds. Broken down by verb, and host.",
    labelNames: ["verb", "host"],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
    registers,
  });
  const lists = new Counter({
    name: "reflector_lists_total",
    help: "Number of whole lists taken in, by what made them necessary.",
    labelNames: ["resource", "reason"],
    registers,
  });
  const watchEnds = new Counter({
    name: "reflector_watch_ends_total",
    help: "Number of watches that ended, by how.",
    labelNames: ["resource", "reason"],
    registers,
  });
  const errors = new Counter({
    name: "reflector_errors_total",
    help: "Number of failed lists and watches, each tried again after a backoff.",
    labelNames: ["resource"],
    registers,
  });
  const items = new Gauge({
    name: "reflector_items_per_list",
    help: "Number of objects in the last whole list.",
    labelNames: ["resource"],
    registers,
  });
  return {
    onRequest({ method, verb, host, status, durationMs }) {
      requests.inc({ code: status === 0 ? "<error>" : String(status), method, host });
      if (verb !== "watch") {
        duration.observe({ verb, host }, durationMs / 1000);
      }
    },
    reflector: {
      onList({ resource, reason, items: count }) {
        lists.inc({ resource: resource.plural, reason });
        items.set({ resource: resource.plural }, count);
      },
      onWatchEnd: ({ resource, reason }) => watchEnds.inc({ resource: resource.plural, reason }),
      onError: ({ resource }) => errors.inc({ resource: resource.plural }),
    },
  };
}
