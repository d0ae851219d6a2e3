/** Samples databases every minute: reads the engines and the kubelets, derives snapshots, hands them on. */

import { SNAPSHOT_REFRESH_SECONDS } from "@slipway/crds";
import type { MetricSampleRow, StoredMetricSamples } from "@slipway/ledger";
import type { Clock, Logger } from "@slipway/process";
import { parseRaw, type RawSample } from "./facts.ts";
import type { Outbox } from "./outbox.ts";
import type { Resources } from "./resources.ts";
import { Rounds } from "./rounds.ts";
import { type Reading, snapshotOf } from "./snapshot.ts";
import type { SampledType, Target } from "./targets.ts";

/** Reads one engine. */
export type ReadEngine = (target: Target, signal: AbortSignal) => Promise<Reading>;

export interface SamplerOptions {
  targets(): Target[];
  engines: Readonly<Partial<Record<SampledType, ReadEngine>>>;
  resources: Pick<Resources, "of">;
  outbox: Pick<Outbox, "put" | "close">;
  /** What is kept, to continue from. */
  stored(): Promise<StoredMetricSamples[]>;
  clock: Clock;
  log: Logger;
  onResult?(type: SampledType, result: "success" | "error"): void;
}

/** Longest time of one sample, in milliseconds. */
const LIMIT_MS = 10_000;

export class DatabaseSampler {
  readonly #options: SamplerOptions;
  /** By instance: what the next sample's rates are computed from. */
  #bases = new Map<string, { projectUid: string; raw: RawSample }>();

  constructor(options: SamplerOptions) {
    this.#options = options;
  }

  /** Ends when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, outbox } = this.#options;
    await this.#recall();
    const rounds = new Rounds<Target, MetricSampleRow & { raw: RawSample }>({
      targets: () => this.#targets(),
      keyOf,
      organizationOf: ({ organizationId }) => organizationId,
      sample: (target, stop) => this.#sample(target, stop),
      onSample: (target, row) => this.#keep(target, row),
      onFailure: (target, error) => this.#failed(target, error),
      clock,
      periodMs: SNAPSHOT_REFRESH_SECONDS * 1_000,
      limitMs: LIMIT_MS,
    });
    await rounds.run(signal);
    await outbox.close();
  }

  /** Without what is kept the first sample of each instance has no rates; that is all. */
  async #recall(): Promise<void> {
    const { log, stored } = this.#options;
    try {
      for (const { newest, ...name } of await stored()) {
        const raw = parseRaw(newest.raw);
        if (raw) {
          this.#bases.set(keyOf(name), { projectUid: name.projectUid, raw });
        }
      }
    } catch (error) {
      log.warn({ err: error }, "samples of databases that are kept were not read");
    }
  }

  #targets(): Target[] {
    const targets = this.#options.targets();
    const known = new Set(targets.map(keyOf));
    for (const key of this.#bases.keys()) {
      if (!known.has(key)) {
        this.#bases.delete(key);
      }
    }
    return targets;
  }

  async #sample(target: Target, signal: AbortSignal): Promise<MetricSampleRow & { raw: RawSample }> {
    const { clock, engines, resources } = this.#options;
    const read = engines[target.type];
    if (!read) {
      throw new Error("nobody samples that engine");
    }
    const pending = resources.of(target);
    // Before it is read: on a busy machine an answer may take a while, and what happened meanwhile may be missing from it.
    const observedAt = clock.now();
    const reading = await read(target, signal);
    const usage = await pending;
    // A driver need not report how large its volumes are; their claims do.
    const resource = {
      ...usage,
      storage_capacity_bytes: usage.storage_capacity_bytes ?? target.claimBytes ?? null,
    };
    const base = this.#bases.get(keyOf(target));
    const snapshot = snapshotOf(reading, base?.projectUid === target.projectUid ? base.raw : undefined, {
      type: target.type,
      instance: target.instance,
      observedAt,
      collectedAt: clock.now(),
      resource,
      expected: target.expected,
    });
    const { organizationId, projectId, projectUid, instance } = target;
    return { organizationId, projectId, projectUid, instance, snapshot, raw: reading.raw };
  }

  #keep(target: Target, row: MetricSampleRow & { raw: RawSample }): void {
    this.#bases.set(keyOf(target), { projectUid: target.projectUid, raw: row.raw });
    this.#options.outbox.put(row);
    this.#options.onResult?.(target.type, "success");
  }

  /** What was sampled before stays, and becomes stale. Errors of drivers may have settings: only their messages are logged. */
  #failed({ type, projectId, instance }: Target, error: unknown): void {
    const { log, onResult } = this.#options;
    onResult?.(type, "error");
    const { message } = error instanceof Error ? error : new Error("unknown");
    log.debug({ project: projectId, instance, type, message }, "a database was not sampled");
  }
}

const keyOf = ({
  organizationId,
  projectId,
  instance,
}: Omit<StoredMetricSamples, "newest" | "projectUid">): string =>
  `${organizationId}/${projectId}/${instance}`;
