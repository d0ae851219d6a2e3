/** Scales projects by their requests: how many instances each needs at the least becomes the least of its autoscaler. */

import { type Clock, type Logger, sleep } from "@slipway/process";
import { type Decision, LeastInstances } from "./least-instances.ts";
import type { RequestScalingMetrics } from "./metrics.ts";
import { RequestRates, type Round } from "./request-rates.ts";
import type { ProjectTarget, RequestScaling } from "./target.ts";

/** Who needs the counts beside those that are scaled. */
export interface RoundObserver {
  /** Whether they are to be read now. */
  isWanted: () => boolean;
  add: (round: Round) => void;
}

export interface RequestScalingOptions {
  /** All projects that are scaled by requests. Without any nothing is read, unless an observer wants it. */
  targets: () => readonly ProjectTarget[];
  /** Reads the counts. */
  read: (signal: AbortSignal) => Promise<Round>;
  observer?: RoundObserver;
  /** A project needs another number of instances. */
  onChange: (project: ProjectTarget["project"]) => void;
  /** Milliseconds between two rounds. */
  intervalMs: number;
  metrics: RequestScalingMetrics;
  clock: Clock;
  log: Pick<Logger, "warn">;
}

/** Nodes that a line of the log names. */
const MAX_NODES = 10;

/** Of a node's collector, or of all of them. */
interface Failure {
  node: string | undefined;
  error: unknown;
}

export class RequestScaler implements RequestScaling {
  readonly #least = new LeastInstances();
  readonly #rates = new RequestRates();
  /** Nodes whose requests were not counted the last time; empty when all were. */
  #failing = "";

  leastOf(uid = ""): number | undefined {
    return this.#least.of(uid);
  }

  decisionOf(uid = ""): Decision | undefined {
    return this.#least.decisionOf(uid);
  }

  /** Until the signal aborts. Never rejects. */
  async run(options: RequestScalingOptions, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.round(options, signal);
      await sleep(options.clock, options.intervalMs, signal);
    }
    // Another process leads, and decides.
    options.metrics.projects.set(0);
    this.#decide([], options);
  }

  /** Reads once, and decides. Never rejects. */
  async round(options: RequestScalingOptions, signal: AbortSignal): Promise<void> {
    const { metrics, targets, observer } = options;
    const found = targets();
    metrics.projects.set(found.length);
    if (found.length > 0 || observer?.isWanted()) {
      const round = await this.#read(options, signal);
      if (signal.aborted) {
        return;
      }
      this.#rates.add(round);
      observer?.add(round);
    }
    this.#decide(found, options);
  }

  #decide(targets: readonly ProjectTarget[], { clock, metrics, onChange }: RequestScalingOptions): void {
    for (const { project } of this.#least.update(targets, this.#rates, clock.monotonic())) {
      metrics.changes.inc();
      onChange(project);
    }
  }

  async #read({ read, metrics, clock, log }: RequestScalingOptions, signal: AbortSignal): Promise<Round> {
    try {
      const round = await read(signal);
      const isComplete = round.complete && round.readings.every(({ complete }) => complete);
      metrics.round(isComplete ? "complete" : "incomplete");
      this.#report(round.failures ?? [], log);
      return round;
    } catch (error) {
      metrics.round("failed");
      this.#report([{ node: undefined, error }], log);
      return { at: clock.monotonic(), readings: [], complete: false };
    }
  }

  /** Logs failures when they are of other nodes than those of the last round. */
  #report(failures: readonly Failure[], log: RequestScalingOptions["log"]): void {
    const nodes = failures.flatMap(({ node }) => node ?? []).sort();
    const failing = failures.length === 0 ? "" : JSON.stringify(nodes);
    const [failure] = failures;
    if (failure && failing !== this.#failing) {
      const fields = { err: failure.error, nodes: nodes.slice(0, MAX_NODES), failures: failures.length };
      log.warn(fields, "requests of projects cannot be counted: no instances are removed");
    }
    this.#failing = failing;
  }
}
