import { type Clock, type Logger, type Random, sleep } from "@slipway/process";
import type { KubeClient } from "../client/client.ts";
import { isAlreadyExists, isConflict } from "../client/errors.ts";
import { resources } from "../client/resources.ts";
import { microTime } from "../status/events.ts";
import { heldLease, type Lease, type LeaseSpec, LeaseWatch } from "./lease.ts";
import { type ShardLease, ShardRivals } from "./shard-rivals.ts";
import { shardLeaseName } from "./shards.ts";

export interface LeaderElectorOptions {
  client: KubeClient;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Where the Lease is and what it is called; that of a shard but the first ends in its index. */
  namespace: string;
  name: string;
  /** The shard that is led; all there is without it. Nobody leads one while another number of shards is led. */
  shard?: ShardLease;
  /** Who holds it; unique among the candidates. */
  identity: string;
  /** How long others wait after the last renewal that they saw: 15,000. */
  leaseDurationMs?: number;
  /** Without a renewal for so long, leadership is lost: 10,000; less than the lease duration. */
  renewDeadlineMs?: number;
  /** Time between tries: 2,000. */
  retryPeriodMs?: number;
}

/**
 * Leader election by a Lease. No two processes ever compare their wall clocks: a candidate waits until it has itself
 * seen the Lease unchanged for its whole duration, and a leader counts from before it sent its last good renewal, both
 * on a monotonic clock.
 */
export class LeaderElector {
  readonly #options: LeaderElectorOptions;
  readonly #leaseMs: number;
  readonly #deadlineMs: number;
  readonly #retryMs: number;
  readonly #lease: LeaseWatch;
  /** Of the Lease. */
  readonly name: string;
  readonly #rivals: ShardRivals | undefined;
  /** Monotonic time just before the last good renewal was sent. */
  #renewedAt: number | undefined;

  /** @throws RangeError when the times do not leave room for a renewal */
  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseDurationMs ?? 15_000;
    this.#deadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryPeriodMs ?? 2_000;
    this.#lease = new LeaseWatch(options.clock);
    const { client, clock, namespace, name, shard } = options;
    this.name = shardLeaseName(name, shard?.index ?? 0);
    this.#rivals =
      shard && new ShardRivals({ client, clock, namespace, name, shard, leaseMs: this.#leaseMs });
    if (this.#deadlineMs >= this.#leaseMs || this.#retryMs >= this.#deadlineMs) {
      throw new RangeError("leader election needs retryPeriod < renewDeadline < leaseDuration");
    }
  }

  /** Whether this process may act now: it holds the Lease and nobody else can think otherwise yet. */
  get isLeader(): boolean {
    return this.#renewedAt !== undefined && this.#options.clock.monotonic() - this.#renewedAt < this.#leaseMs;
  }

  /** Who was last seen to hold the Lease. */
  get holder(): string {
    return this.#lease.lease?.spec?.holderIdentity ?? "";
  }

  /** Waits until this process is the leader; false when the signal aborted first. Never rejects. */
  async acquire(signal: AbortSignal): Promise<boolean> {
    const { clock, random } = this.#options;
    while (!signal.aborted) {
      if (await this.#try(signal)) {
        if (!(await this.#hasRivals(signal))) {
          return true;
        }
        await this.release();
      }
      await sleep(clock, this.#retryMs * (1 + random() / 5), signal);
    }
    return false;
  }

  /** Renews until the Lease is lost (`lost`) or the signal aborts (`stopped`). Never rejects. */
  async hold(signal: AbortSignal): Promise<"lost" | "stopped"> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      await sleep(clock, this.#retryMs, signal);
      if (signal.aborted) {
        break;
      }
      const held = await this.#within(this.#remainingMs(), signal, (limited) => this.#try(limited));
      if (held) {
        continue;
      }
      // Somebody else holds it, or the deadline passed without a renewal.
      if (this.holder !== this.#options.identity || this.#remainingMs() <= 0) {
        this.#renewedAt = undefined;
        return "lost";
      }
    }
    return "stopped";
  }

  /** Releases the Lease, so that another need not wait until it expires. Call it once nothing acts any more. */
  async release(): Promise<void> {
    const { lease } = this.#lease;
    if (this.#renewedAt === undefined || !lease) {
      return;
    }
    this.#renewedAt = undefined;
    try {
      await this.#clearHolder(lease);
    } catch (error) {
      this.#options.log.warn({ err: error }, "could not release the lease; it will expire");
    }
  }

  /** A renewal that was aborted may have been written all the same: then the Lease is newer than the one observed. */
  async #clearHolder(lease: Lease): Promise<void> {
    const { client, clock, identity } = this.#options;
    const call = { timeoutMs: 5_000 };
    const spec: LeaseSpec = {
      ...lease.spec,
      holderIdentity: "",
      leaseDurationSeconds: 1,
      renewTime: microTime(clock.now()),
    };
    try {
      await client.replace(resources.leases, { ...lease, spec }, call);
    } catch (error) {
      if (!isConflict(error)) {
        throw error;
      }
      await this.#refresh(call);
      const now = this.#lease.lease;
      const isNewer = now?.metadata?.resourceVersion !== lease.metadata?.resourceVersion;
      if (now && isNewer && now.spec?.holderIdentity === identity) {
        await this.#clearHolder(now);
      }
    }
  }

  /** Whether another number of shards is led, or that is not known. */
  async #hasRivals(signal: AbortSignal): Promise<boolean> {
    const { log, shard } = this.#options;
    try {
      const rival = await this.#rivals?.holder({ signal, timeoutMs: this.#deadlineMs / 2 });
      if (rival !== undefined) {
        log.info({ rival, shards: shard?.count }, "another number of shards is led; waiting until it is not");
      }
      return rival !== undefined;
    } catch (error) {
      if (!signal.aborted) {
        log.warn({ err: error }, "leases of other shards not read; trying again");
      }
      return true;
    }
  }

  #remainingMs(): number {
    return (this.#renewedAt ?? 0) + this.#deadlineMs - this.#options.clock.monotonic();
  }

  /** One try to acquire or renew; false when it did not succeed, for whatever reason. */
  async #try(signal: AbortSignal): Promise<boolean> {
    const { client, clock, log, namespace } = this.#options;
    const name = this.name;
    const started = clock.monotonic();
    const call = { signal, timeoutMs: Math.max(1_000, this.#deadlineMs / 2) };
    try {
      const held = this.#lease.lease;
      if (this.#renewedAt === undefined || !held) {
        const lease = await client.getOrUndefined<Lease>(resources.leases, { namespace, name }, call);
        if (lease) {
          this.#lease.observe(lease);
        }
        if ((lease && !this.#isFree(lease)) || (await this.#hasRivals(signal))) {
          return false;
        }
        if (!lease) {
          this.#renewed(
            await client.create<Lease>(resources.leases, this.#desired(undefined), call),
            started,
          );
          return true;
        }
        this.#renewed(await client.replace<Lease>(resources.leases, this.#desired(lease), call), started);
        return true;
      }
      // The leader knows the Lease: one conditional write shows whether it still is.
      this.#renewed(await client.replace<Lease>(resources.leases, this.#desired(held), call), started);
      return true;
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) {
        await this.#refresh(call);
      } else if (!signal.aborted) {
        log.warn({ err: error }, "lease not written; trying again");
      }
      return false;
    }
  }

  /** Reads who holds the Lease, after a conflict. */
  async #refresh(call: { signal?: AbortSignal; timeoutMs: number }): Promise<void> {
    const { client, namespace } = this.#options;
    const lease = await client
      .getOrUndefined<Lease>(resources.leases, { namespace, name: this.name }, call)
      .catch(() => undefined);
    if (lease) {
      this.#lease.observe(lease);
    }
  }

  #renewed(lease: Lease, started: number): void {
    this.#lease.observe(lease);
    this.#renewedAt = started;
  }

  #isFree({ spec }: Lease): boolean {
    return spec?.holderIdentity === this.#options.identity || this.#lease.isFree(this.#leaseMs);
  }

  #desired(lease: Lease | undefined): Lease {
    const { clock, identity, namespace, shard } = this.#options;
    const annotations = shard && { [shard.annotation]: String(shard.count) };
    const holder = { identity, namespace, name: this.name, leaseMs: this.#leaseMs, now: clock.now() };
    return heldLease(lease, { ...holder, annotations });
  }

  /** Runs with a signal that also aborts after `ms`. */
  async #within<R>(ms: number, signal: AbortSignal, run: (limited: AbortSignal) => Promise<R>): Promise<R> {
    const abort = new AbortController();
    const stop = () => abort.abort(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    const timer = this.#options.clock.setTimeout(() => abort.abort(), Math.max(0, ms));
    try {
      return await run(abort.signal);
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", stop);
    }
  }
}
