import {
  Counter,
  Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type Registry,
} from "prom-client";

/**
 * Counts calls and their durations by operation. prom-client resolves labels by name at each observation, which took a read 3 % of its
 * processor time: here an operation's figures are plain numbers, rendered when they are scraped.
 */

/** Records the outcome of each call of one operation. */
export interface OperationObservation {
  readonly operationId: string;
  /** @param seconds from the first byte of the request to the last of the answer */
  observe(status: number, seconds: number): void;
}

/** Upper bounds of the histogram, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx"] as const;

/** The figures of one operation since the start of the process. */
class Calls implements OperationObservation {
  readonly operationId: string;
  /** Answers by the first digit of their status. */
  readonly byClass = new Array<number>(CLASSES.length).fill(0);
  /** Calls by the first bound that they are within; not cumulative. */
  readonly byBucket = new Array<number>(BUCKETS.length).fill(0);
  seconds = 0;
  count = 0;

  constructor(operationId: string) {
    this.operationId = operationId;
  }

  observe(status: number, seconds: number): void {
    const digit = Math.floor(status / 100) - 1;
    if (digit >= 0 && digit < CLASSES.length) {
      this.byClass[digit] = (this.byClass[digit] ?? 0) + 1;
    }
    this.seconds += seconds;
    this.count += 1;
    for (let at = 0; at < BUCKETS.length; at += 1) {
      if (seconds <= (BUCKETS[at] as number)) {
        this.byBucket[at] = (this.byBucket[at] ?? 0) + 1;
        return;
      }
    }
  }
}

type Values = MetricObjectWithValues<MetricValueWithName<"operation" | "le">>;

/** A histogram whose values are those of {@link Calls}. */
class DurationHistogram extends Histogram<"operation"> {
  readonly #calls: ReadonlyMap<string, Calls>;
  readonly #metric: Omit<Values, "values">;

  constructor(name: string, help: string, registry: Registry, calls: ReadonlyMap<string, Calls>) {
    super({ name, help, labelNames: ["operation"], buckets: BUCKETS, registers: [registry] });
    this.#calls = calls;
    // Declared as an enumeration that does not exist: it is the text that is rendered.
    const type = "histogram" as unknown as Values["type"];
    this.#metric = { name, help, type, aggregator: "sum", collect: () => undefined };
  }

  override get(): Promise<Values> {
    return Promise.resolve({
      ...this.#metric,
      values: [...this.#calls.values()].flatMap(valuesOf(this.#metric.name)),
    });
  }

  /** What the registry calls in place of `get` when it renders text. */
  getForPromString(): Promise<Values> {
    return this.get();
  }
}

/** The lines of one operation: cumulative buckets, sum and count; none before its first call. */
function valuesOf(name: string): (calls: Calls) => Values["values"] {
  return ({ operationId: operation, byBucket, seconds, count }) => {
    if (count === 0) {
      return [];
    }
    let within = 0;
    const buckets = BUCKETS.map((bound, at) => {
      within += byBucket[at] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le: bound, operation }, value: within };
    });
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { le: "+Inf", operation }, value: count },
      { metricName: `${name}_sum`, labels: { operation }, value: seconds },
      { metricName: `${name}_count`, labels: { operation }, value: count },
    ];
  };
}

/** The two metrics of calls. */
export class CallMetrics {
  readonly #calls = new Map<string, Calls>();

  constructor(registry: Registry) {
    const calls = this.#calls;
    new Counter({
      name: "slipway_api_requests_total",
      help: "Requests answered, by operation and status class.",
      labelNames: ["operation", "class"],
      registers: [registry],
      collect() {
        this.reset();
        for (const { operationId: operation, byClass } of calls.values()) {
          byClass.forEach((value, digit) => {
            if (value > 0) {
              this.inc({ operation, class: CLASSES[digit] }, value);
            }
          });
        }
      },
    });
    new DurationHistogram(
      "slipway_api_request_duration_seconds",
      "Time to answer, by operation.",
      registry,
      calls,
    );
  }

  /** The figures of an operation; the same ones for the same id. */
  operation(operationId: string): OperationObservation {
    const known = this.#calls.get(operationId) ?? new Calls(operationId);
    this.#calls.set(operationId, known);
    return known;
  }
}
