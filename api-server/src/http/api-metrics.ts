import { collectProcessMetrics } from "@slipway/process";
import { Counter, Gauge, Registry } from "prom-client";
import type { AuditObserver } from "../audit/log.ts";
import type { EndCode } from "../exec/frames.ts";
import type { PaymentProvider } from "../payments/secrets.ts";
import { CallMetrics, type OperationObservation } from "./call-metrics.ts";

const paymentWebhookOutcomes = [
  "applied",
  "duplicate",
  "ignored",
  "refused",
  "unavailable",
  "unreadable",
  "unsigned",
] as const;
export type PaymentWebhookOutcome = (typeof paymentWebhookOutcomes)[number];

/**
 * The API server's metrics. Labels are bounded: operation ids of the policy table and status classes.
 */
export class ApiMetrics {
  readonly registry = new Registry();
  readonly #calls: CallMetrics;
  readonly #execEnds: Counter<"code">;
  readonly #auditFailures: Counter;
  readonly #auditUnrecorded: Counter<"reason">;
  readonly #waits: Counter<"outcome">;
  readonly #payments: Counter<"provider" | "outcome">;

  constructor(options: { processMetrics: boolean }) {
    const registers = [this.registry];
    if (options.processMetrics) {
      collectProcessMetrics(this.registry);
    }
    this.#calls = new CallMetrics(this.registry);
    this.#waits = new Counter({
      name: "slipway_api_write_waits_total",
      help: "Requests that waited until the memory had a write of another replica: seen, or timeout.",
      labelNames: ["outcome"],
      registers,
    });
    this.#payments = new Counter({
      name: "slipway_api_payment_webhooks_total",
      help: "Webhooks of payments by what became of them: applied, duplicate, ignored, refused, unavailable where they could not be recorded, unreadable although signed, or unsigned.",
      labelNames: ["provider", "outcome"],
      registers,
    });
    for (const provider of ["stripe", "generic"]) {
      for (const outcome of paymentWebhookOutcomes) {
        this.#payments.inc({ provider, outcome }, 0);
      }
    }
    this.#execEnds = new Counter({
      name: "slipway_api_exec_sessions_ended_total",
      help: "Commands in instances that clients were connected to, by why that ended.",
      labelNames: ["code"],
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

  /** A webhook of payments was received, with what became of it. */
  paymentEvent(provider: PaymentProvider, outcome: PaymentWebhookOutcome): void {
    this.#payments.inc({ provider, outcome });
  }

  /** How many events of payments changed nothing and were to, within a day, counted at each scrape. */
  watchRefusedPayments(count: () => Promise<number>): void {
    new Gauge({
      name: "slipway_api_payment_events_refused",
      help: "Events of payments within the last day that are recorded and fit no invoice; NaN while the ledger does not answer.",
      registers: [this.registry],
      async collect() {
        this.set(await count().catch(() => Number.NaN));
      },
    });
  }

  /** Records the calls of one operation, without resolving a label for each. */
  operation(operationId: string): OperationObservation {
    return this.#calls.operation(operationId);
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

  /** How many sessions of commands there are, read when scraped. */
  watchExec(size: () => number): void {
    new Gauge({
      name: "slipway_api_exec_sessions",
      help: "Commands in instances that clients are connected to.",
      registers: [this.registry],
      collect() {
        this.set(size());
      },
    });
  }

  /** A session of a command has ended. */
  execEnded(code: EndCode): void {
    this.#execEnds.labels({ code }).inc();
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

  /** How many standbys of the ledger have every commit before it is acknowledged, counted at each scrape. */
  watchLedgerStandbys(count: () => Promise<number>): void {
    new Gauge({
      name: "slipway_api_ledger_synchronous_standbys",
      help: "Standbys that have every commit of the ledger before it is acknowledged; NaN while the ledger does not answer.",
      registers: [this.registry],
      async collect() {
        this.set(await count().catch(() => Number.NaN));
      },
    });
  }

  /** Bytes that are free on the disk of the analytics store, asked at each scrape. @param free null where that is unknown */
  watchAnalyticsDisk(free: () => Promise<number | null>): void {
    new Gauge({
      name: "slipway_api_analytics_free_bytes",
      help: "Bytes that are free on the disk of the analytics store; NaN while it does not answer.",
      registers: [this.registry],
      async collect() {
        this.set((await free().catch(() => null)) ?? Number.NaN);
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
