import type { Clock } from "@slipway/process";
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
  holder: {
    identity: string;
    namespace: string;
    name: string;
    leaseMs: number;
    now: Date;
    annotations?: Record<string, string>;
  },
): Lease {
  const { identity, namespace, name, leaseMs } = holder;
  const annotations = { ...lease?.metadata?.annotations, ...holder.annotations };
  const now = microTime(holder.now);
  const mine = lease?.spec?.holderIdentity === identity;
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { namespace, name, ...lease?.metadata, annotations },
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

/** A Lease as last observed, and since when it is so, on a monotonic clock: no two processes compare their wall clocks. */
export class LeaseWatch {
  readonly #clock: Clock;
  #observed: { lease: Lease; at: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get lease(): Lease | undefined {
    return this.#observed?.lease;
  }

  observe(lease: Lease): void {
    if (this.lease?.metadata?.resourceVersion !== lease.metadata?.resourceVersion) {
      this.#observed = { lease, at: this.#clock.monotonic() };
    }
  }

  /** Whether nobody holds the Lease that was last observed, or it was not renewed for its whole duration. */
  isFree(defaultMs: number): boolean {
    const { holderIdentity, leaseDurationSeconds } = this.lease?.spec ?? {};
    if (!holderIdentity) {
      return true;
    }
    const durationMs = leaseDurationSeconds ? leaseDurationSeconds * 1_000 : defaultMs;
    return this.#clock.monotonic() - (this.#observed?.at ?? Number.POSITIVE_INFINITY) >= durationMs;
  }
}
