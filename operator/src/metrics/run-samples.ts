/** Samples the containers of running runs: polls each node that has some, and no other. */

import { type KubeletAddress, type Reading, untilAborted } from "@slipway/controller-runtime";
import { type Clock, ConcurrencyLimiter, type Logger, type Timer } from "@slipway/process";
import type { RunSamples, SampledRun } from "../jobs/runs/ports.ts";
import { collecting, finished, type Series, seriesOf, withReading } from "./sample-series.ts";

export interface KubeletSamplesOptions {
  kubelets: {
    read(address: KubeletAddress, signal: AbortSignal): Promise<ReadonlyMap<string, Reading>>;
    close(address: KubeletAddress): Promise<void>;
  };
  /** Where a node's kubelet listens now; undefined when the node is not known. */
  addressOf: (nodeName: string) => KubeletAddress | undefined;
  clock: Clock;
  log: Logger;
  onRead?: (result: "success" | "error") => void;
}

/** Milliseconds between two requests to a node. */
const PERIOD_MS = 5_000;
/** While a run on it is that young, which may end soon. */
const YOUNG_MS = 15_000;
const YOUNG_PERIOD_MS = 2_000;
/** Between two that new runs cause. */
const SHORTEST_MS = 1_000;
/** Longest pause after failures, so that a kubelet that is back is polled soon. */
const LONGEST_MS = 30_000;
/** How long the state of a node without runs is kept, in milliseconds. */
const IDLE_MS = 600_000;
/**
 * Concurrent requests: to kubelets that answer, and to those that did not. Keyed by node, not by organization: one request
 * covers all runs on a node, so that an organization's runs add no request where another has one.
 */
const ANSWERING = { total: 16, perKey: 1 };
const SILENT = { total: 4, perKey: 1 };

interface Followed {
  readonly podUid: string;
  readonly since: number;
  /** With the newest reading, and without: it may be of after the end. */
  series: Series;
  beforeLatest: Series;
}

interface Polled {
  readonly runs: Map<string, Followed>;
  address?: KubeletAddress;
  timer?: Timer;
  /** When the last request began; monotonic. */
  polledAt?: number;
  polling: boolean;
  failures: number;
}

/** The port of the jobrun controller, on the nodes' kubelets. */
export class KubeletSamples implements RunSamples {
  readonly #options: KubeletSamplesOptions;
  readonly #nodes = new Map<string, Polled>();
  readonly #nodeOf = new Map<string, string>();
  readonly #answering = new ConcurrencyLimiter(ANSWERING);
  readonly #silent = new ConcurrencyLimiter(SILENT);
  readonly #stop = new AbortController();

  constructor(options: KubeletSamplesOptions) {
    this.#options = options;
  }

  follow({ key, nodeName, podUid, startedAt, before }: SampledRun): void {
    if (this.#nodeOf.has(key) || this.#stop.signal.aborted) {
      return;
    }
    const series = seriesOf(startedAt, before);
    let node = this.#nodes.get(nodeName);
    if (node === undefined) {
      node = { runs: new Map(), polling: false, failures: 0 };
      this.#nodes.set(nodeName, node);
    }
    node.runs.set(key, { podUid, since: this.#options.clock.monotonic(), series, beforeLatest: series });
    this.#nodeOf.set(key, nodeName);
    this.#schedule(nodeName, node);
  }

  read(key: string): ReturnType<RunSamples["read"]> {
    const series = this.#followed(key)?.series;
    return series === undefined || series.samples === 0 ? undefined : collecting(series);
  }

  finish(
    key: string,
    { startedAt, finishedAt, before }: Parameters<RunSamples["finish"]>[1],
  ): ReturnType<RunSamples["finish"]> {
    const run = this.#followed(key);
    if (run === undefined) {
      return finished(seriesOf(startedAt, before));
    }
    const late = (run.series.sampledAt ?? 0) > finishedAt.getTime();
    return finished(late ? run.beforeLatest : run.series);
  }

  forget(key: string): void {
    const nodeName = this.#nodeOf.get(key);
    const node = nodeName === undefined ? undefined : this.#nodes.get(nodeName);
    this.#nodeOf.delete(key);
    if (nodeName === undefined || node === undefined) {
      return;
    }
    node.runs.delete(key);
    if (node.runs.size === 0) {
      this.#schedule(nodeName, node);
    }
  }

  /** Ends when the signal aborts, and with it every request. */
  async run(signal: AbortSignal): Promise<void> {
    await untilAborted(signal);
    this.#stop.abort();
    const nodes = [...this.#nodes.values()];
    this.#nodes.clear();
    for (const node of nodes) {
      node.timer?.cancel();
    }
    await Promise.allSettled(nodes.map(({ address }) => address && this.#options.kubelets.close(address)));
  }

  #followed(key: string): Followed | undefined {
    return this.#nodes.get(this.#nodeOf.get(key) ?? "")?.runs.get(key);
  }

  /** Resets the node's timer: for the next request, or for dropping a node without runs. */
  #schedule(name: string, node: Polled): void {
    node.timer?.cancel();
    node.timer = undefined;
    if (node.polling || this.#stop.signal.aborted) {
      return;
    }
    const { clock } = this.#options;
    if (node.runs.size === 0) {
      node.timer = clock.setTimeout(() => this.#drop(name, node), IDLE_MS);
      return;
    }
    const now = clock.monotonic();
    const due = node.polledAt === undefined ? now : node.polledAt + this.#pause(node, now);
    node.timer = clock.setTimeout(() => void this.#poll(name, node), Math.max(0, due - now));
  }

  #pause({ failures, runs, polledAt = 0 }: Polled, now: number): number {
    if (failures > 0) {
      return Math.min(PERIOD_MS * 2 ** (failures - 1), LONGEST_MS);
    }
    const followed = [...runs.values()];
    if (followed.some(({ since }) => since > polledAt)) {
      return SHORTEST_MS;
    }
    return followed.some(({ since }) => now - since < YOUNG_MS) ? YOUNG_PERIOD_MS : PERIOD_MS;
  }

  #drop(name: string, node: Polled): void {
    if (node.runs.size > 0) {
      return;
    }
    this.#nodes.delete(name);
    if (node.address) {
      void this.#options.kubelets.close(node.address).catch(() => undefined);
    }
  }

  /** Polls one kubelet for all followed runs of its node. Never rejects. */
  async #poll(name: string, node: Polled): Promise<void> {
    const { clock, kubelets, log, addressOf, onRead } = this.#options;
    node.polling = true;
    const limiter = node.failures > 0 ? this.#silent : this.#answering;
    try {
      await limiter.run(name, async () => {
        if (node.runs.size === 0 || this.#stop.signal.aborted) {
          return;
        }
        node.polledAt = clock.monotonic();
        const address = addressOf(name);
        if (address === undefined) {
          throw new Error("the node has no address");
        }
        await this.#updateAddress(node, address);
        const readings = await kubelets.read(address, this.#stop.signal);
        for (const run of node.runs.values()) {
          note(run, readings.get(run.podUid));
        }
        node.failures = 0;
        onRead?.("success");
      });
    } catch (error) {
      node.failures += 1;
      if (!this.#stop.signal.aborted) {
        onRead?.("error");
        // Logged as a warning once for each outage: the runs' own metrics show what is lost.
        const level = node.failures === 1 ? "warn" : "debug";
        log[level]({ err: error, node: name, failures: node.failures }, "kubelet gave no samples");
      }
    }
    node.polling = false;
    this.#schedule(name, node);
  }

  /** A node of the same name may come back at another address. */
  async #updateAddress(node: Polled, address: KubeletAddress): Promise<void> {
    const old = node.address;
    node.address = address;
    if (old && (old.host !== address.host || old.port !== address.port)) {
      await this.#options.kubelets.close(old);
    }
  }
}

function note(run: Followed, reading: Reading | undefined): void {
  const next = reading === undefined ? run.series : withReading(run.series, reading);
  if (next === run.series) {
    return;
  }
  run.beforeLatest = run.series;
  run.series = next;
}
