import type { KubernetesObject } from "../client/types.ts";
import { microTime } from "../status/events.ts";

/** The parts of a Lease's spec that matter here. */
export interface LeaseSpec {
  holderIdentity?: string | null;
  leaseDurationSeconds?: number | null;
  acquireTime?: string | null;
  renewTime?: string | null;
  leaseTransitions?: number | null;
}

export interface Lease extends KubernetesObject {
  spec?: LeaseSpec;
}

/** The Lease as its holder writes it: taken over from another, or renewed. */
export function heldLease(
  lease: Lease | undefined,
  holder: { identity: string; namespace: string; name: string; leaseMs: number; now: Date },
): Lease {
  const { identity, namespace, name, leaseMs } = holder;
  const now = microTime(holder.now);
  const mine = lease?.spec?.holderIdentity === identity;
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { namespace, name, ...(lease?.metadata ?? {}) },
    spec: {
      ...lease?.spec,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseMs / 1000),
      acquireTime: mine ? lease?.spec?.acquireTime : now,
      renewTime: now,
      leaseTransitions: (lease?.spec?.leaseTransitions ?? 0) + (lease && !mine ? 1 : 0),
    },
  };
}
