/** Metrics of the operator other than those of its controllers. */

import type { Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { Gauge, type Registry } from "prom-client";

/** What names of the operator's metrics and span attributes begin with, the controller runtime's own among them. */
export const TELEMETRY_PREFIX = "slipway";

/** Registers the number of projects by type and phase, read when metrics are scraped. */
export function registerProjectMetrics(registry: Registry, projects: Store<Project>): void {
  new Gauge({
    name: "slipway_projects",
    help: "Projects by type and phase.",
    labelNames: ["type", "phase"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { spec, status } of projects.list()) {
        this.inc({ type: spec.type, phase: status?.phase ?? "creating" });
      }
    },
  });
}
