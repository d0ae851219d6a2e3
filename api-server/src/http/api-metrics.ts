import { collectProcessMetrics } from "@slipway/process";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { AuditObserver } from "../audit/log.ts";

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Records the outcome of each call of one operation. */
export interface OperationObservation {
  readonly operationId: string;
  /** @param seconds from the first byte of the request to the last of the answer */
  observe(status: number, seconds: number): void;
}

/**
 * The API server's metrics. Labels are bounded: operation ids of the policy table and status classes.
 */
export class ApiMetrics {
  readonly registry = new Registry();
  readonly #requests: Counter<"operation" | "class">;
  readonly #duration: Histogram<"operation">;
  readonly #auditFailures: Counter;
  readonly #auditUnrecorded: Counter<"reason">;
  readonly #waits: Counter<"outcome">;

  constructor(options: { processMetrics: boolean }) {
    const registers = [this.registry];
    if (options.processMetrics) {
      collectProcessMetrics(this.registry);
    }
    this.#requests = new Counter({
      name: "slipway_api_requests_total",
      help: "Requests answered, by operation and status class.",
      labelNames: ["operation", "class"],
      registers,
    });
    this.#duration = new Histogram({
      name: "slipway_api_request_duration_seconds",
      help: "Time to answer, by operation.",
      labelNames: ["operation"],
      buckets: BUCKETS,
      registers,
    });
    this.#waits = new Counter({
      name: "slipway_api_write_waits_total",
      help: "Requests that waited until the memory had a write of another replica: seen, or timeout.",
      labelNames: ["outcome"],
      registers,
    });
    this.#auditFailures = new Counter({
      name: "slipway_api_audit_lines_lost_total",
      help: "Audit lines that could not be written to the ledger.",
      registers,
    });
    this.#auditUnrecorded = new Counter({
      name: "slipway_api_audit_unrecorded_total",
      help: "Refusals without a line in the audit log: of the rate limit, or beyond the organization's budget.",
      labelNames: ["reason"],
      registers,
    });
  }

  /** Binds the labels once, so that a request resolves no label by name. */
  operation(operationId: string): OperationObservation {
    const classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].map((name) =>
      this.#requests.labels({ operation: operationId, class: name }),
    );
    const duration = this.#duration.labels({ operation: operationId });
    return {
      operationId,
      observe: (status, seconds) => {
        classes[Math.floor(status / 100) - 1]?.inc();
        duration.observe(seconds);
      },
    };
  }

  /** How many projects are in memory, read when scraped. */
  watchProjects(size: () => number): void {
    new Gauge({
      name: "slipway_api_projects",
      help: "Projects in memory.",
      registers: [this.registry],
      collect() {
        this.set(size());
      },
    });
  }

  /** How many runs are in memory, read when scraped. */
  watchJobRuns(size: () => number): void {
    new Gauge({
      name: "slipway_api_job_runs",
      help: "Runs of jobs in memory: active ones, and those of the last minutes.",
      registers: [this.registry],
      collect() {
        this.set(size());
      },
    });
  }

  /** How many streams of logs are open, read when scraped. */
  watchStreams(size: () => number): void {
    new Gauge({
      name: "slipway_api_streams",
      help: "Streams of logs that are open.",
      registers: [this.registry],
      collect() {
        this.set(size());
      },
    });
  }

  /** Whether requests are shed because memory is short, read when scraped. */
  watchLoad(isOverloaded: () => boolean): void {
    new Gauge({
      name: "slipway_api_overloaded",
      help: "1 while new requests are refused because memory is short, else 0.",
      registers: [this.registry],
      collect() {
        this.set(isOverloaded() ? 1 : 0);
      },
    });
  }

  /** Whether the ledger answers, checked at each scrape. */
  watchLedger(answers: () => Promise<boolean>): void {
    new Gauge({
      name: "slipway_api_ledger_up",
      help: "1 while the ledger answers, else 0.",
      registers: [this.registry],
      async collect() {
        this.set((await answers()) ? 1 : 0);
      },
    });
  }

  /**
   * Whether the shared Valkey answers, read when scraped.
   * @returns what to call for each rate limit that was counted in memory instead
   */
  watchValkey(isUp: () => boolean): () => void {
    new Gauge({
      name: "slipway_api_valkey_up",
      help: "1 while rate limits are counted over all replicas, 0 while each counts in memory.",
      registers: [this.registry],
      collect() {
        this.set(isUp() ? 1 : 0);
      },
    });
    const inMemory = new Counter({
      name: "slipway_api_rate_limits_in_memory_total",
      help: "Calls that were counted in memory because Valkey was away.",
      registers: [this.registry],
    });
    return () => inMemory.inc();
  }

  /** A request waited for a write of another replica, and observed it or timed out. */
  waitedForWrite(seen: boolean): void {
    this.#waits.labels({ outcome: seen ? "seen" : "timeout" }).inc();
  }

  /** What is not in the audit log. */
  get audit(): AuditObserver {
    return {
      lost: () => this.#auditFailures.inc(),
      unrecorded: (reason) => this.#auditUnrecorded.labels({ reason }).inc(),
    };
  }
}
