import type { MetricsSnapshot } from "@slipway/crds";
import { type Ledger, type MetricInstance, newestMetricSample } from "@slipway/ledger";
import { withLedgerErrors } from "../ledger/availability.ts";

/** Where the samples of databases are read from. */
export interface Snapshots {
  /**
   * The newest valid sample of an instance, however old; undefined when there is none. Of a database that was created again
   * under the same name there is none either.
   * @throws Failure 503 when they cannot be read
   */
  newest(name: MetricInstance): Promise<MetricsSnapshot | undefined>;
}

/** What the operator has sampled. */
export function ledgerSnapshots(ledger: Ledger): Snapshots {
  return { newest: (name) => withLedgerErrors(() => newestMetricSample(ledger, name)) };
}
