import {
  allNull,
  type MetricsSnapshot,
  mariadbMetrics,
  type Project,
  postgresqlMetrics,
  SNAPSHOT_REFRESH_SECONDS,
  SNAPSHOT_SCHEMA_VERSION,
  snapshotResource,
} from "@slipway/crds";
import { type Ledger, type MetricInstance, newestMetricSample } from "@slipway/ledger";
import { withLedgerErrors } from "../ledger/availability.ts";

/** Snapshots of metrics, read from the ledger, and as `/v1` shows them. */

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

/** Snapshots as `/v1` shows them. Pure. */

/** A sample that is older is shown as stale: two others should have come since. */
const STALE_AFTER_MS = 2.5 * SNAPSHOT_REFRESH_SECONDS * 1000;

type Availability = "available" | "partial" | "stale" | "unavailable";
type Sampled = Project["spec"]["type"];

/** The types that have snapshots. */
export const sampledTypes = ["postgresql", "mariadb", "valkey"] as const satisfies readonly Sampled[];

function availabilityOf(sample: MetricsSnapshot, now: Date): Availability {
  return now.getTime() - Date.parse(sample.observed_at) > STALE_AFTER_MS ? "stale" : sample.availability;
}

/**
 * `data` of the answer: what was sampled last, with its own timestamps, or null in every field where nothing was.
 * @param instance that was requested
 */
export function snapshotView(
  { metadata, spec }: Project,
  instance: string,
  sample: MetricsSnapshot | undefined,
  now: Date,
): Record<string, unknown> {
  if (spec.type === "valkey") {
    return valkeyView(instance, spec.profile ?? "", sample?.type === "valkey" ? sample : undefined, now);
  }
  const common = { project_id: metadata.name, instance, type: spec.type };
  if (sample?.type === spec.type) {
    const { schema_version, observed_at, collected_at, resource, native } = sample;
    const availability = availabilityOf(sample, now);
    return { schema_version, ...common, observed_at, collected_at, availability, resource, native };
  }
  return {
    schema_version: SNAPSHOT_SCHEMA_VERSION,
    ...common,
    observed_at: null,
    collected_at: null,
    availability: "unavailable",
    resource: allNull(snapshotResource),
    native: allNull(spec.type === "mariadb" ? mariadbMetrics : postgresqlMetrics),
  };
}

function valkeyView(
  instance: string,
  profile: string,
  sample: Extract<MetricsSnapshot, { type: "valkey" }> | undefined,
  now: Date,
): Record<string, unknown> {
  const availability = sample ? availabilityOf(sample, now) : "unavailable";
  return {
    instance,
    type: "valkey",
    cpu: sample?.resource.cpu_usage_cores ?? 0,
    memory: sample?.resource.memory_usage_bytes ?? 0,
    observed_at: sample?.observed_at ?? null,
    availability,
    valkey: sample
      ? { schema_version: sample.schema_version, profile, availability, ...sample.native }
      : null,
  };
}
