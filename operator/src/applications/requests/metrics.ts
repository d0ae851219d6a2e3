import { Counter, Gauge, type Registry } from "prom-client";

/** How a round of reading ended: with all figures, without some of them, or with none. */
export const ROUND_RESULTS = ["complete", "incomplete", "failed"] as const;
export type RoundResult = (typeof ROUND_RESULTS)[number];

/** Metrics of scaling by requests. No label has values of organizations. */
export class RequestScalingMetrics {
  readonly projects: Gauge;
  readonly changes: Counter;
  readonly #rounds: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.projects = new Gauge({
      name: "slipway_request_scaling_projects",
      help: "Projects of this operator that are scaled by requests.",
      registers,
    });
    this.changes = new Counter({
      name: "slipway_request_scaling_changes_total",
      help: "Changes of the least number of a project's instances because of its requests.",
      registers,
    });
    this.#rounds = new Counter({
      name: "slipway_request_scaling_rounds_total",
      help: "Rounds in which the counts of requests were read, by result.",
      labelNames: ["result"],
      registers,
    });
    for (const result of ROUND_RESULTS) {
      this.#rounds.inc({ result }, 0);
    }
  }

  round(result: RoundResult): void {
    this.#rounds.inc({ result });
  }
}
