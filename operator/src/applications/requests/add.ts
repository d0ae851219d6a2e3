/** Puts together what scales projects by their requests. */

import type { Manager } from "@slipway/controller-runtime";
import type { Config } from "../../config.ts";
import type { ProjectQueue } from "../../projects/controller.ts";
import type { ProjectStores } from "../../projects/stores.ts";
import { readCounts } from "./counts-reader.ts";
import { RequestScalingMetrics } from "./metrics.ts";
import type { RequestScaler, RoundObserver } from "./request-scaling.ts";
import { liveLeast, type ProjectTarget, targetOf } from "./target.ts";

/** Adds it to the manager: it runs while this process leads, for the projects of its shard. */
export function addRequestScaling(
  manager: Manager,
  scaler: RequestScaler,
  options: {
    ingress: Config["ingress"];
    settings: NonNullable<Config["requestScaling"]>;
    stores: ProjectStores;
    projects: ProjectQueue;
    observer?: RoundObserver;
  },
): void {
  const { client, clock, log, registry } = manager;
  const { ingress, settings, stores, projects, observer } = options;
  const reader = {
    ...{ client, clock },
    ingress: { namespace: ingress.namespace, container: settings.ingressContainer },
    collectors: settings.collectors,
  };
  const scaling = {
    ...{
      clock,
      log,
      observer,
      intervalMs: settings.intervalMs,
      metrics: new RequestScalingMetrics(registry),
    },
    targets: () =>
      stores.projects
        .list()
        .filter(({ metadata }) => manager.owns(metadata.namespace))
        .flatMap((project) => targetOf(project, liveLeast(stores, project)) ?? []),
    read: (signal: AbortSignal) => readCounts(reader, signal),
    onChange: (project: ProjectTarget["project"]) => projects.enqueue(project),
  };
  manager.addRunnable({
    name: "request-scaling",
    everyShard: true,
    run: (signal) => scaler.run(scaling, signal),
  });
}
