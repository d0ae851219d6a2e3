import { randomUUID } from "node:crypto";
import type { InstanceSample } from "@slipway/analytics";
import type { KubeletAddress, Kubelets, Summary } from "@slipway/controller-runtime";
import { type Clock, sleep } from "@slipway/process";
import type { DiskQuota } from "./disk-quota.ts";
import { MeasuredOnce, samplesOf } from "./instance-samples.ts";
import type { CollectorMetrics } from "./metrics.ts";
import type { PodOwners } from "./pod-owners.ts";
import type { Log } from "./sender.ts";
import type { Spool } from "./spool.ts";

export interface InstanceSamplerOptions {
  kubelets: Pick<Kubelets, "summary">;
  /** Of this node's kubelet. */
  address: KubeletAddress;
  pods: Pick<PodOwners, "list">;
  intervalMs: number;
  spool: Pick<Spool<InstanceSample>, "add" | "bytes" | "count">;
  /** While nothing remains, nothing is sampled: there is a gap. */
  quota: Pick<DiskQuota, "isFull">;
  metrics: CollectorMetrics;
  log: Log;
  clock: Clock;
  /** Seconds since the node started. */
  uptime: () => number;
}

/** For one answer of the kubelet as a whole, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** Samples what the node's instances use, one batch each time. A sample that fails is a gap: the next one counts from the one before. */
export class InstanceSampler {
  readonly #options: InstanceSamplerOptions;
  readonly #measured = new MeasuredOnce();
  #isStopped = false;

  constructor(options: InstanceSamplerOptions) {
    this.#options = options;
  }

  /** Samples until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, intervalMs, log } = this.#options;
    let failures = 0;
    while (!signal.aborted) {
      const began = clock.monotonic();
      try {
        await this.step(signal);
        failures = 0;
      } catch (error) {
        if (!signal.aborted) {
          failures += 1;
          if (failures === 1 || failures % 20 === 0) {
            log.error({ err: error, failures }, "what instances use cannot be sampled");
          }
        }
      }
      await sleep(clock, Math.max(1_000, intervalMs - (clock.monotonic() - began)), signal).catch(
        () => undefined,
      );
    }
  }

  /** Takes one sample of each instance. @throws what the kubelet or the disk fails with */
  async step(signal: AbortSignal): Promise<void> {
    const { pods, spool, metrics, clock, uptime } = this.#options;
    const own = pods.list();
    const summary = await this.#read(own.length > 0, signal);
    if (!summary) {
      return;
    }
    const now = clock.now().getTime();
    const { samples, omitted } = samplesOf(summary, own, { now, bootedAt: now - uptime() * 1000 });
    metrics.linesRead(own.length);
    metrics.omitted(omitted);
    const fresh = this.#measured.of(samples);
    if (fresh.length === 0) {
      return;
    }
    try {
      await spool.add(fresh, undefined, `metrics-${randomUUID()}`);
    } catch (error) {
      metrics.failed("write");
      throw error;
    }
    this.#measured.note(samples, fresh);
    metrics.batchMade(fresh.length);
  }

  /** @returns undefined where the buffer is full, or nothing is to be sampled */
  async #read(hasPods: boolean, signal: AbortSignal): Promise<Summary | undefined> {
    const { kubelets, address, quota, metrics } = this.#options;
    try {
      if (this.#hasStopped(await quota.isFull()) || !hasPods) {
        return undefined;
      }
      const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
      return await kubelets.summary(address, within);
    } catch (error) {
      if (!signal.aborted) {
        metrics.failed("read");
      }
      throw error;
    }
  }

  /** Logs once when sampling stops, and once when it continues. */
  #hasStopped(isFull: boolean): boolean {
    const { metrics, log, spool } = this.#options;
    if (isFull !== this.#isStopped) {
      this.#isStopped = isFull;
      metrics.readingStopped(isFull);
      const fields = { batches: spool.count, bytes: spool.bytes };
      if (isFull) {
        log.error(fields, "the buffer is full: instances are not sampled");
      } else {
        log.info(fields, "the buffer has room again: instances are sampled");
      }
    }
    return isFull;
  }
}
