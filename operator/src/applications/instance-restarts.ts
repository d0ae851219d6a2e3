/** Counts restarts of instances, each once. */

import type { Clock } from "@slipway/process";
import { Counter, type Registry } from "prom-client";
import type { Termination } from "./terminations.ts";

/** Reasons of which the metric knows; every other one is Other. */
const REASONS = ["LivenessFailed", "StartupTimeout", "OOMKilled", "Error", "Completed"] as const;
const OTHER = "Other";

/** What ended longer ago is no news to a process that observes a project for the first time. */
const NEWS_MS = 600_000;

/** Registers the metric. @throws Error when it is called twice for one registry */
export function createRestartMetric(registry: Registry): Counter<"reason"> {
  const counter = new Counter({
    name: "slipway_instance_restarts_total",
    help: "Restarts of instances of HTTP projects, by how the one before ended.",
    labelNames: ["reason"],
    registers: [registry],
  });
  for (const reason of [...REASONS, OTHER]) {
    counter.inc({ reason }, 0);
  }
  return counter;
}

export class InstanceRestarts {
  readonly #counter: Counter<"reason">;
  readonly #clock: Clock;
  /** By project's uid: restarts that were counted, by pod's uid. */
  readonly #counted = new Map<string, ReadonlyMap<string, number>>();

  constructor(counter: Counter<"reason">, clock: Clock) {
    this.#counter = counter;
    this.#clock = clock;
  }

  /**
   * Counts what has been restarted since the project was observed last.
   * @param reported when the end that the project's status has was, RFC 3339: of what was before this process began, later ones count
   * @returns those that are new
   */
  observe(projectUid: string, terminations: readonly Termination[], reported?: string): Termination[] {
    const known = this.#counted.get(projectUid);
    const added = terminations.map((termination) => {
      const { podUid, restarts } = termination;
      const unseen = known !== undefined || this.#isNews(termination, reported) ? 0 : restarts;
      const before = known ? (known.get(podUid) ?? 0) : Math.max(unseen, restarts - 1);
      return { termination, count: restarts - before };
    });
    this.#counted.set(
      projectUid,
      new Map(terminations.map(({ podUid, restarts }) => [podUid, restarts] as const)),
    );
    const fresh = added.filter(({ count }) => count > 0);
    for (const { termination, count } of fresh) {
      this.#counter.inc({ reason: labelOf(termination.reason) }, count);
    }
    return fresh.map(({ termination }) => termination);
  }

  /** Forgets a project that is deleted. */
  forget(projectUid: string): void {
    this.#counted.delete(projectUid);
  }

  #isNews({ finishedAt }: Termination, reported = ""): boolean {
    return finishedAt > reported && Date.parse(finishedAt) > this.#clock.now().getTime() - NEWS_MS;
  }
}

const labelOf = (reason: string): string => REASONS.find((known) => known === reason) ?? OTHER;

const CAUSES: Readonly<Record<string, string>> = {
  LivenessFailed: "did not answer its liveness path",
  StartupTimeout: "did not start to serve in time",
  OOMKilled: "used more memory than its plan has",
};

/** An instance's restart in words, for its project's owner. */
export function restartNote({ instance, reason, exitCode, restarts }: Termination): string {
  const cause = CAUSES[reason] ?? "ended by itself";
  return `Instance ${instance} ${cause}: exit code ${exitCode}, restart ${restarts}.`;
}
