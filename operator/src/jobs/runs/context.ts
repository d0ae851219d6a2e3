import type { EventRecorder } from "@slipway/controller-runtime";
import type { Catalog } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { Charger } from "./charge-recorder.ts";
import type { RunCluster } from "./cluster.ts";
import type { LogCapturer } from "./log-archiver.ts";
import type { JobRunMetrics } from "./metrics.ts";
import type { RunSamples } from "./ports.ts";
import type { JobRunSettings } from "./settings.ts";
import type { JobRunStores } from "./stores.ts";

/** All that the jobrun reconciler is made from. */
export interface JobRunDependencies {
  cluster: RunCluster;
  clock: Clock;
  recorder: EventRecorder;
  stores: JobRunStores;
  catalog: () => Pick<Catalog, "jobPlans">;
  charger: Charger;
  capturer: LogCapturer;
  samples: RunSamples;
  metrics: JobRunMetrics;
  settings: JobRunSettings;
  /** Since when this process leads. */
  ledSince: () => Date;
}
