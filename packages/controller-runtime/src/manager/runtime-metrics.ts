import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Outcome } from "../controller/outcome.ts";

/** The numbers of one work queue that are read when metrics are scraped. */
export interface QueueView {
  readonly name: string;
  readonly length: number;
  /** Seconds since each key under way was handed out. */
  secondsInProgress(): number[];
}

/** Metrics in the shapes of controller-runtime and client-go, so that their dashboards and alerts fit. */
export type RuntimeMetrics = ReturnType<typeof createRuntimeMetrics>;

const RECONCILE_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5,
  1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
const QUEUE_BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000];

/** What metrics and span attributes begin with that controller-runtime, client-go and OpenTelemetry have no name for. */
export const DEFAULT_TELEMETRY_PREFIX = "controller_runtime";

/**
 * Registers all metrics of the runtime.
 * @param prefix of the metrics that controller-runtime and client-go lack
 * @throws Error when it is called twice for one registry
 */
export function createRuntimeMetrics(registry: Registry, prefix: string = DEFAULT_TELEMETRY_PREFIX) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter<L>({ name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Gauge<L>({ name, help, labelNames, registers });
  const queues: QueueView[] = [];

  const reconcileTotal = counter("controller_runtime_reconcile_total", "Reconciles by result.", [
    "controller",
    "result",
  ]);
  const errorsTotal = counter("controller_runtime_reconcile_errors_total", "Reconciles that failed.", [
    "controller",
  ]);
  const terminalTotal = counter(
    "controller_runtime_terminal_reconcile_errors_total",
    "Reconciles that failed for good, until the object changes.",
    ["controller"],
  );
  const panicsTotal = counter(
    "controller_runtime_reconcile_panics_total",
    "Reconciles that failed by a defect.",
    ["controller"],
  );
  const timeoutsTotal = counter(
    "controller_runtime_reconcile_timeouts_total",
    "Reconciles over their time limit.",
    ["controller"],
  );
  const reconcileTime = new Histogram({
    name: "controller_runtime_reconcile_time_seconds",
    help: "Length of time per reconcile.",
    labelNames: ["controller"],
    buckets: RECONCILE_BUCKETS,
    registers,
  });
  const labels = ["name", "controller"] as const;
  const queueHistogram = (name: string, help: string) =>
    new Histogram({ name, help, labelNames: labels, buckets: QUEUE_BUCKETS, registers });
  new Gauge({
    name: "workqueue_depth",
    help: "Current depth of the work queue.",
    labelNames: labels,
    registers,
    collect() {
      for (const queue of queues) {
        this.set({ name: queue.name, controller: queue.name }, queue.length);
      }
    },
  });
  new Gauge({
    name: "workqueue_unfinished_work_seconds",
    help: "Seconds of work in progress that work_duration has not observed yet.",
    labelNames: labels,
    registers,
    collect() {
      for (const queue of queues) {
        const sum = queue.secondsInProgress().reduce((total, seconds) => total + seconds, 0);
        this.set({ name: queue.name, controller: queue.name }, sum);
      }
    },
  });
  new Gauge({
    name: "workqueue_longest_running_processor_seconds",
    help: "Seconds for which the longest reconcile has been running.",
    labelNames: labels,
    registers,
    collect() {
      for (const queue of queues) {
        this.set({ name: queue.name, controller: queue.name }, Math.max(0, ...queue.secondsInProgress()));
      }
    },
  });

  return {
    /** Counts how a reconcile of a controller ended. */
    observeReconcile(controller: string, outcome: Outcome, seconds: number): void {
      reconcileTotal.inc({ controller, result: resultLabel(outcome) });
      reconcileTime.observe({ controller }, seconds);
      if (outcome.kind === "retryable" || outcome.kind === "panic" || outcome.kind === "terminal") {
        errorsTotal.inc({ controller });
      }
      if (outcome.kind === "terminal") {
        terminalTotal.inc({ controller });
      }
      if (outcome.kind === "panic") {
        panicsTotal.inc({ controller });
      }
    },
    /** Makes every series of a controller exist from the start, at zero. */
    initController(controller: string): void {
      for (const result of ["success", "error", "requeue", "requeue_after"]) {
        reconcileTotal.inc({ controller, result }, 0);
      }
      for (const total of [errorsTotal, terminalTotal, panicsTotal, timeoutsTotal]) {
        total.inc({ controller }, 0);
      }
    },
    /** Adds a queue to those whose depth and unfinished work are reported. */
    registerQueue: (queue: QueueView): void => {
      queues.push(queue);
    },
    timeouts: timeoutsTotal,
    activeWorkers: gauge("controller_runtime_active_workers", "Workers that are busy.", ["controller"]),
    maxConcurrent: gauge("controller_runtime_max_concurrent_reconciles", "Workers of a controller.", [
      "controller",
    ]),
    queueAdds: counter("workqueue_adds_total", "Keys added to the work queue.", [...labels]),
    queueRetries: counter("workqueue_retries_total", "Keys added with a delay.", [...labels]),
    queueLatency: queueHistogram(
      "workqueue_queue_duration_seconds",
      "Seconds that a key waits in the queue.",
    ),
    workDuration: queueHistogram("workqueue_work_duration_seconds", "Seconds that processing a key takes."),
    leader: gauge(
      "leader_election_master_status",
      "1 while this process is the leader of the lease, else 0.",
      ["name"],
    ),
    applies: counter(
      `${prefix}_apply_objects_total`,
      "Child objects looked at, by what was done with them.",
      ["field_manager", "kind", "result"],
    ),
    events: counter(`${prefix}_events_total`, "Events asked for, by what became of them.", ["result"]),
    handlerErrors: counter(`${prefix}_event_handler_errors_total`, "Watch event handlers that threw.", [
      "resource",
    ]),
  };
}

/** controller-runtime's label: success, requeue_after or error. */
function resultLabel(outcome: Outcome): string {
  if (outcome.kind === "success" && outcome.requeue.type === "none") {
    return "success";
  }
  return outcome.kind === "success" || outcome.kind === "waiting" ? "requeue_after" : "error";
}
