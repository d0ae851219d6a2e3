import type { Clock } from "@slipway/process";
import type { KubeClient } from "../client/client.ts";
import { resources } from "../client/resources.ts";
import { type Lease, LeaseWatch } from "./lease.ts";
import { type Shard, shardLeaseNames } from "./shards.ts";

/** The shard whose Lease is acquired. */
export interface ShardLease extends Shard {
  /** Annotation of the Lease: how many shards its holder knows of. A Lease without it is of an operator that is not sharded. */
  readonly annotation: string;
}

export interface ShardRivalsOptions {
  client: KubeClient;
  clock: Clock;
  namespace: string;
  /** Of the first shard's Lease. */
  name: string;
  shard: ShardLease;
  leaseMs: number;
}

/**
 * Leaders that know of another number of shards: while one of them acts, none of this number may, since both could reconcile the same
 * namespace. A candidate reads their Leases before it acquires its own, so that it blocks nobody while it waits, and again once it has: of two that
 * acquired at the same time, at least one then sees the other, because the apiserver's reads follow its writes.
 */
export class ShardRivals {
  readonly #options: ShardRivalsOptions;
  readonly #leases = new Map<string, LeaseWatch>();

  constructor(options: ShardRivalsOptions) {
    this.#options = options;
  }

  /** Who leads a shard of another number of shards; undefined when nobody does. @throws KubeError */
  async holder(call: { signal?: AbortSignal; timeoutMs: number }): Promise<string | undefined> {
    const { client, namespace, name } = this.#options;
    const leases = await Promise.all(
      shardLeaseNames(name).map((each) =>
        client.getOrUndefined<Lease>(resources.leases, { namespace, name: each }, call),
      ),
    );
    return (
      leases.find((lease) => lease !== undefined && this.#isRival(lease))?.spec?.holderIdentity ?? undefined
    );
  }

  #isRival(lease: Lease): boolean {
    const { shard, clock, leaseMs } = this.#options;
    const { name = "", annotations } = lease.metadata ?? {};
    const watch = this.#leases.get(name) ?? new LeaseWatch(clock);
    this.#leases.set(name, watch);
    watch.observe(lease);
    const count = Number(annotations?.[shard.annotation] ?? 1);
    return count !== shard.count && !watch.isFree(leaseMs);
  }
}
