import type { EventRecorder, KubeClient } from "@slipway/controller-runtime";
import type { BuildRow } from "@slipway/ledger";
import type { Clock } from "@slipway/process";
import type { BuildCluster, BuildStores } from "./cluster.ts";
import type { LogFollower, StoreBuildLog } from "./log-follower.ts";
import type { BuildMetrics } from "./metrics.ts";
import type { BuildSettings } from "./settings.ts";
import type { OpenSource } from "./sources.ts";

/** Dependencies of the build reconciler. */
export interface BuildDependencies {
  client: KubeClient;
  clock: Clock;
  /** Of instants that are charged. */
  trustedClock: Clock;
  recorder: EventRecorder;
  stores: BuildStores;
  settings: () => BuildSettings;
  cluster: BuildCluster;
  openSource: OpenSource;
  /** Writes a build into the ledger; throws when it cannot. */
  record: (row: BuildRow) => Promise<unknown>;
  storeLog: StoreBuildLog;
  follower: LogFollower;
  metrics: BuildMetrics;
}
