import { collectProcessMetrics } from "@slipway/process";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** Why a line, or a record over OTLP, became no event. */
export const REFUSALS = [
  // The line itself.
  "damaged",
  "oversize",
  "not_json",
  "incomplete",
  "other",
  // Whose it is.
  "no_route",
  "not_a_project",
  "ambiguous",
  "probe",
  "unknown",
] as const;

/** Why a line of a project's log is left out, other than for its bounds. */
export const LOG_REFUSALS = ["damaged"] as const;

export type Refusal = (typeof REFUSALS)[number];

/** Where metrics are registered, and what their names begin with. */
class NamedMetrics {
  readonly registry: Registry;
  readonly prefix: string;

  constructor(registry: Registry, prefix: string) {
    this.registry = registry;
    this.prefix = prefix;
  }
}

/** The collector's own metrics. No label's values depend on requests. */
export class CollectorMetrics extends NamedMetrics {
  readonly #lines = this.#counter("lines_total", "Lines of logs, or instances, that were read");
  readonly #events = this.#counter(
    "events_total",
    "Requests, lines of projects' logs, or samples of instances, that were put into batches",
  );
  readonly #batches = new Counter({
    name: `${this.prefix}_batches_total`,
    help: "Batches, by what became of them",
    labelNames: ["result"] as const,
    registers: [this.registry],
  });
  readonly #refused = new Counter({
    name: `${this.prefix}_refused_lines_total`,
    help: "Lines and records that are no request of a project, by reason",
    labelNames: ["reason"] as const,
    registers: [this.registry],
  });
  readonly #gaps = this.#counter(
    "gaps_total",
    "Files of a log that were gone before they were read to their end",
  );
  readonly #omitted = this.#counter(
    "omitted_lines_total",
    "Lines, or samples, over the bounds of their project or organization",
  );
  readonly #stopped = new Gauge({
    name: `${this.prefix}_reading_stopped`,
    help: "1 while the buffer is full and nothing is read",
    registers: [this.registry],
  });
  readonly #quota = new Gauge({
    name: `${this.prefix}_buffer_room_bytes`,
    help: "Bytes that may still be put into the buffer: what it may grow, and what the disk has",
    registers: [this.registry],
  });
  readonly #held = new Gauge({
    name: `${this.prefix}_held_organizations`,
    help: "Organizations whose logs are not read for now: they have their share of the buffer",
    registers: [this.registry],
  });
  readonly #failures = new Counter({
    name: `${this.prefix}_failures_total`,
    help: "Steps that failed and are tried again",
    labelNames: ["step"] as const,
    registers: [this.registry],
  });
  readonly #lag = new Histogram({
    name: `${this.prefix}_lag_seconds`,
    help: "From a request's end until the store had it; once for the oldest of a batch",
    buckets: [0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300, 3600],
    registers: [this.registry],
  });

  /**
   * @param prefix of the names of one pipeline of several in a registry
   * @param reasons for which its lines may become no event
   */
  constructor(
    registry = new Registry(),
    prefix = "slipway_collector",
    reasons: readonly Refusal[] = REFUSALS,
  ) {
    super(registry, prefix);
    for (const reason of reasons) {
      this.#refused.inc({ reason }, 0);
    }
    for (const result of ["made", "sent", "refused", "damaged"]) {
      this.#batches.inc({ result }, 0);
    }
    for (const step of ["read", "write", "send", "resolve", "receive"]) {
      this.#failures.inc({ step }, 0);
    }
  }

  /** Figures of the process itself, in the names that Prometheus's clients share. */
  withProcess(): this {
    collectProcessMetrics(this.registry);
    return this;
  }

  /** Reads the buffer's size from the disk with every scrape. */
  watch(
    spool: () => { bytes: number; count: number; oldest: { madeAt: number } | undefined } | undefined,
  ): void {
    this.#gauge("buffered_bytes", "Bytes of batches on the disk", () => spool()?.bytes ?? 0);
    this.#gauge("buffered_batches", "Batches on the disk", () => spool()?.count ?? 0);
    this.#gauge("oldest_unsent_seconds", "Age of the oldest batch on the disk", () => {
      const oldest = spool()?.oldest;
      return oldest ? Math.max(0, (Date.now() - oldest.madeAt) / 1000) : 0;
    });
  }

  linesRead(count: number): void {
    this.#lines.inc(count);
  }

  refused(reason: Refusal): void {
    this.#refused.inc({ reason });
  }

  batchMade(events: number): void {
    this.#events.inc(events);
    this.#batches.inc({ result: "made" });
  }

  batchSent(lagSeconds: number): void {
    this.#batches.inc({ result: "sent" });
    this.#lag.observe(Math.max(0, lagSeconds));
  }

  batchLost(result: "refused" | "damaged"): void {
    this.#batches.inc({ result });
  }

  omitted(lines: number): void {
    this.#omitted.inc(lines);
  }

  gap(files: number): void {
    this.#gaps.inc(files);
  }

  readingStopped(isStopped: boolean): void {
    this.#stopped.set(isStopped ? 1 : 0);
  }

  organizationsHeld(count: number): void {
    this.#held.set(count);
  }

  quotaRemaining(bytes: number): void {
    this.#quota.set(Math.max(0, bytes));
  }

  failed(step: "read" | "write" | "send" | "resolve" | "receive"): void {
    this.#failures.inc({ step });
  }

  #counter(name: string, help: string): Counter {
    return new Counter({ name: `${this.prefix}_${name}`, help, registers: [this.registry] });
  }

  #gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name: `${this.prefix}_${name}`,
      help,
      registers: [this.registry],
      collect() {
        this.set(read());
      },
    });
  }
}
