/** When projects were last requested: observed since this process leads, and unknown before. */

import { lookup } from "node:dns/promises";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { type Counters, readCounters } from "./counters.ts";

/** Pause between two readings. */
const READ_MS = 5_000;
/** After so long without a reading, nothing is known of the time between. */
const GAP_MS = 60_000;

export interface LastRequestsOptions {
  clock: Clock;
  log: Logger;
  /** Metrics of the ingress; its host may have several addresses, each of which is one process of it. */
  url: string;
  /** Whether a project is to be observed. */
  isWanted: () => boolean;
  /** In place of the host's look-up, and of the reading of one address. */
  addresses?: (host: string) => Promise<string[]>;
  read?: (url: string, signal: AbortSignal) => Promise<Counters>;
}

const addressesOf = async (host: string): Promise<string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address);

export class LastRequests {
  readonly #options: Required<LastRequestsOptions>;
  /** Monotonic times. Since when every process of the ingress was observed without a gap; undefined before. */
  #since: number | undefined;
  #readAt = 0;
  readonly #last = new Map<string, number>();
  #known = new Map<string, Counters>();

  constructor(options: LastRequestsOptions) {
    this.#options = { addresses: addressesOf, read: readCounters, ...options };
  }

  /** Seconds since the last request of any of these Services, at the least; undefined while it is unknown. */
  idleSeconds(services: readonly string[]): number | undefined {
    const now = this.#options.clock.monotonic();
    if (this.#since === undefined || now - this.#readAt > GAP_MS) {
      return undefined;
    }
    const last = Math.max(this.#since, ...services.map((service) => this.#last.get(service) ?? 0));
    return Math.max(0, Math.floor((this.#readAt - last) / 1_000));
  }

  /** Reads until the signal aborts, while a project is to be observed. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, isWanted, log } = this.#options;
    while (!signal.aborted) {
      if (isWanted()) {
        await this.readOnce(signal).catch((error: unknown) => {
          if (!signal.aborted) {
            log.warn({ err: error }, "the metrics of the ingress cannot be read: projects do not sleep");
          }
        });
      }
      await sleep(clock, READ_MS, signal).catch(() => {});
    }
  }

  /** @throws Error when a process of the ingress does not answer: it may have had any request meanwhile */
  async readOnce(signal: AbortSignal): Promise<void> {
    const { clock, url, addresses, read } = this.#options;
    const { hostname } = new URL(url);
    const known = new Map<string, Counters>();
    const begunAt = clock.monotonic();
    for (const address of await addresses(hostname)) {
      known.set(address, await read(at(url, address), signal));
    }
    const now = clock.monotonic();
    if (known.size === 0) {
      throw new Error("the ingress has no address");
    }
    const isGap = this.#since === undefined || begunAt - this.#readAt > GAP_MS;
    // One that has ended may have answered requests that were never read.
    const hasLost = [...this.#known.keys()].some((address) => !known.has(address));
    if (isGap || hasLost) {
      this.#since = now;
      this.#last.clear();
    }
    for (const [address, counters] of known) {
      const before = this.#known.get(address);
      for (const [service, count] of counters) {
        if (count !== (before?.get(service) ?? 0)) {
          this.#last.set(service, now);
        }
      }
    }
    this.#known = known;
    this.#readAt = now;
  }
}

function at(url: string, address: string): string {
  const one = new URL(url);
  one.hostname = address.includes(":") ? `[${address}]` : address;
  return one.href;
}
