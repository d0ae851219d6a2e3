import { type Clock, type Logger, type Random, sleep } from "@slipway/process";
import type { KubeClient } from "../client/client.ts";
import { isAlreadyExists, isConflict } from "../client/errors.ts";
import { resources } from "../client/resources.ts";
import { microTime } from "../status/events.ts";
import { heldLease, type Lease, type LeaseSpec } from "./lease.ts";

export interface LeaderElectorOptions {
  client: KubeClient;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Where the Lease is and what it is called. */
  namespace: string;
  name: string;
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
  /** The Lease as last observed, and the monotonic time at which it was first observed so. */
  #observed: { lease: Lease; at: number } | undefined;
  /** Monotonic time just before the last good renewal was sent. */
  #renewedAt: number | undefined;

  /** @throws RangeError when the times do not leave room for a renewal */
  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseDurationMs ?? 15_000;
    this.#deadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryPeriodMs ?? 2_000;
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
    return this.#observed?.lease.spec?.holderIdentity ?? "";
  }

  /** Waits until this process is the leader; false when the signal aborted first. Never rejects. */
  async acquire(signal: AbortSignal): Promise<boolean> {
    const { clock, random } = this.#options;
    while (!signal.aborted) {
      if (await this.#try(signal)) {
        return true;
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
    if (this.#renewedAt === undefined || !this.#observed) {
      return;
    }
    this.#renewedAt = undefined;
    try {
      await this.#clearHolder(this.#observed.lease);
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
      const now = this.#observed?.lease;
      const isNewer = now?.metadata?.resourceVersion !== lease.metadata?.resourceVersion;
      if (now && isNewer && now.spec?.holderIdentity === identity) {
        await this.#clearHolder(now);
      }
    }
  }

  #remainingMs(): number {
    return (this.#renewedAt ?? 0) + this.#deadlineMs - this.#options.clock.monotonic();
  }

  /** One try to acquire or renew; false when it did not succeed, for whatever reason. */
  async #try(signal: AbortSignal): Promise<boolean> {
    const { client, clock, log, namespace, name } = this.#options;
    const started = clock.monotonic();
    const call = { signal, timeoutMs: Math.max(1_000, this.#deadlineMs / 2) };
    try {
      if (this.#renewedAt === undefined || !this.#observed) {
        const lease = await client.getOrUndefined<Lease>(resources.leases, { namespace, name }, call);
        if (!lease) {
          this.#renewed(
            await client.create<Lease>(resources.leases, this.#desired(undefined), call),
            started,
          );
          return true;
        }
        this.#observe(lease);
        if (!this.#isFree(lease)) {
          return false;
        }
        this.#renewed(await client.replace<Lease>(resources.leases, this.#desired(lease), call), started);
        return true;
      }
      // The leader knows the Lease: one conditional write shows whether it still is.
      this.#renewed(
        await client.replace<Lease>(resources.leases, this.#desired(this.#observed.lease), call),
        started,
      );
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
    const { client, namespace, name } = this.#options;
    const lease = await client
      .getOrUndefined<Lease>(resources.leases, { namespace, name }, call)
      .catch(() => undefined);
    if (lease) {
      this.#observe(lease);
    }
  }

  #observe(lease: Lease): void {
    if (this.#observed?.lease.metadata?.resourceVersion === lease.metadata?.resourceVersion) {
      return;
    }
    this.#observed = { lease, at: this.#options.clock.monotonic() };
  }

  #renewed(lease: Lease, started: number): void {
    this.#observe(lease);
    this.#renewedAt = started;
  }

  #isFree(lease: Lease): boolean {
    const { holderIdentity, leaseDurationSeconds } = lease.spec ?? {};
    if (!holderIdentity || holderIdentity === this.#options.identity) {
      return true;
    }
    const durationMs = (leaseDurationSeconds ?? this.#leaseMs / 1000) * 1000;
    return this.#options.clock.monotonic() - (this.#observed?.at ?? Number.POSITIVE_INFINITY) >= durationMs;
  }

  #desired(lease: Lease | undefined): Lease {
    const { clock, identity, namespace, name } = this.#options;
    return heldLease(lease, { identity, namespace, name, leaseMs: this.#leaseMs, now: clock.now() });
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
