/** Metrics of builds. No label has unbounded values. */

import type { Store } from "@slipway/controller-runtime";
import type { Build } from "@slipway/crds";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { isBuilding, isEnded } from "./queue.ts";

const RESULTS = ["success", "failed", "superseded"] as const;
/** Codes of failures that no repository causes: the step could not be run, or the image not be published. */
const FAULTS = ["BUILD_ENGINE_FAILED", "PROJECT_PUBLISH_FAILED"] as const;
const SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600];

export type BuildMetrics = ReturnType<typeof createBuildMetrics>;

/** Registers the metrics. @throws Error when it is called twice for one registry */
export function createBuildMetrics(registry: Registry, builds: Store<Build>) {
  const registers = [registry];
  const total = new Counter({
    name: "slipway_builds_total",
    help: "Builds that have ended, by result.",
    labelNames: ["result"],
    registers,
  });
  for (const result of RESULTS) {
    total.inc({ result }, 0);
  }
  const faults = new Counter({
    name: "slipway_build_faults_total",
    help: "Builds that failed for what nothing in their repositories explains, by code.",
    labelNames: ["code"],
    registers,
  });
  for (const code of FAULTS) {
    faults.inc({ code }, 0);
  }
  const duration = new Histogram({
    name: "slipway_build_duration_seconds",
    help: "From the beginning of a build's first step to its end, of builds that were published.",
    buckets: SECONDS,
    registers,
  });
  new Gauge({
    name: "slipway_builds",
    help: "Builds that have not ended, by whether they wait for a place.",
    labelNames: ["state"],
    registers,
    collect() {
      const open = builds.list().filter((build) => !isEnded(build));
      const queued = open.filter(({ status }) => status?.phase !== "building").length;
      const building = open.filter(isBuilding).length;
      this.set({ state: "queued" }, queued);
      this.set({ state: "building" }, building);
      this.set({ state: "publishing" }, open.length - queued - building);
    },
  });
  return {
    ended(result: (typeof RESULTS)[number], seconds: number | undefined, code?: string): void {
      total.inc({ result });
      const fault = FAULTS.find((one) => one === code);
      if (fault !== undefined) {
        faults.inc({ code: fault });
      }
      if (result === "success" && seconds !== undefined) {
        duration.observe(seconds);
      }
    },
  };
}
