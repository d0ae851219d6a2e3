import type { InstanceSample, SampleBatch } from "../instance-sample.ts";
import { count, FIRST_MS, insertRows, LAST_MS } from "./insert.ts";
import type { Store } from "./store.ts";

/** What instances used, inserted in batches. `metric-history.ts` reads it. */

const COLUMNS =
  "organization, project, instance, pod, at, booted_at, started_at, cpu_us, memory_bytes, network_at, received_bytes, transmitted_bytes, " +
  "restarts, volume_used_bytes, volume_capacity_bytes";

/**
 * Inserts a batch as `insertEvents` does: whole, and once however often it is tried. A sample that comes again in another batch
 * (the same pod and second) takes the place of the first one.
 * @throws StoreUnavailable when the batch is to be tried again; ClickHouseError when it never will be taken
 */
export async function insertSamples(store: Store, { id, events }: SampleBatch): Promise<void> {
  await insertRows(store, { table: "metrics", columns: COLUMNS }, id, events.values().map(rowOf));
}

function rowOf(sample: InstanceSample): string {
  return JSON.stringify([
    sample.organization,
    sample.project,
    sample.instance,
    sample.pod,
    seconds(sample.at),
    seconds(sample.bootedAt),
    secondsOrNull(sample.startedAt),
    countOrNull(sample.cpuMicroseconds),
    countOrNull(sample.memoryBytes),
    secondsOrNull(sample.networkAt),
    countOrNull(sample.receivedBytes),
    countOrNull(sample.transmittedBytes),
    countOrNull(sample.restarts),
    countOrNull(sample.volumeUsedBytes),
    countOrNull(sample.volumeCapacityBytes),
  ]);
}

/** Whole seconds of ten digits, as the store reads a moment. */
function seconds(ms: number): number {
  return Math.floor(Math.min(Math.max(count(ms), FIRST_MS), LAST_MS) / 1000);
}

const secondsOrNull = (ms: number | null): number | null => (ms === null ? null : seconds(ms));
const countOrNull = (value: number | null): number | null => (value === null ? null : count(value));
