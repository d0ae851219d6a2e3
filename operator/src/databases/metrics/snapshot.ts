/** From a reading of an instance to its snapshot. Pure. */

import {
  type MetricsSnapshot,
  metricsSnapshot,
  SNAPSHOT_SCHEMA_VERSION,
  type SnapshotResource,
} from "@slipway/crds";
import type { RawSample } from "./facts.ts";
import { mariadbNative } from "./mariadb.ts";
import { postgresqlNative } from "./postgresql.ts";
import { type ValkeyExpected, valkeyNative } from "./valkey.ts";

/** What a sampler read. */
export interface Reading {
  raw: RawSample;
  /** A part that should have been there could not be read. */
  incomplete: boolean;
}

export interface SnapshotContext {
  type: MetricsSnapshot["type"];
  instance: string;
  observedAt: Date;
  collectedAt: Date;
  /** Undefined where no server could be queried. */
  resource: SnapshotResource;
  expected: ValkeyExpected;
}

/**
 * What a reading shows, with an earlier one of the same instance as the base of rates. `partial` is one of which some part could
 * not be read: not what has no source, nor what has no base yet.
 * @throws when the shape of snapshots is broken, which none may ever be kept with
 */
export function snapshotOf(
  { raw, incomplete }: Reading,
  before: RawSample | undefined,
  { type, instance, observedAt, collectedAt, resource, expected }: SnapshotContext,
): MetricsSnapshot {
  const unread = Object.values(resource).every((value) => value === null);
  return metricsSnapshot.parse({
    schema_version: SNAPSHOT_SCHEMA_VERSION,
    type,
    instance,
    observed_at: observedAt.toISOString(),
    collected_at: collectedAt.toISOString(),
    availability: incomplete || unread ? "partial" : "available",
    resource,
    native: natives[type](raw, before, expected),
  });
}

const natives = { postgresql: postgresqlNative, mariadb: mariadbNative, valkey: valkeyNative } as const;
