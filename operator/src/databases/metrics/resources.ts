/** CPU, memory and storage of databases' pods, as the kubelets report them: one request a node and round. */

import type { KubeletAddress, PodReading } from "@slipway/controller-runtime";
import { allNull, type SnapshotResource, snapshotResource } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { DATA } from "../common/pod.ts";

export interface ResourcesOptions {
  kubelets: {
    readPods(address: KubeletAddress, signal: AbortSignal): Promise<ReadonlyMap<string, PodReading>>;
  };
  /** Where a node's kubelet listens now; undefined when the node is not known. */
  addressOf(node: string): KubeletAddress | undefined;
  clock: Clock;
  onRead?(result: "success" | "error"): void;
}

/** How long an answer serves all of a node's pods, and how long one is waited for, in milliseconds. */
const FRESH_MS = 15_000;
const LIMIT_MS = 4_000;

/** Null in every field where the kubelet cannot be queried, or does not know. */
export const UNKNOWN: SnapshotResource = allNull(snapshotResource);

export class Resources {
  readonly #options: ResourcesOptions;
  readonly #nodes = new Map<string, { at: number; answer: Promise<ReadonlyMap<string, PodReading>> }>();

  constructor(options: ResourcesOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async of({ node, podUid }: { node: string | undefined; podUid: string }): Promise<SnapshotResource> {
    if (node === undefined) {
      return UNKNOWN;
    }
    try {
      return resourceOf((await this.#node(node)).get(podUid));
    } catch {
      return UNKNOWN;
    }
  }

  #node(node: string): Promise<ReadonlyMap<string, PodReading>> {
    const { clock } = this.#options;
    const kept = this.#nodes.get(node);
    if (kept && clock.monotonic() - kept.at < FRESH_MS) {
      return kept.answer;
    }
    for (const [name, { at }] of this.#nodes) {
      if (clock.monotonic() - at >= FRESH_MS) {
        this.#nodes.delete(name);
      }
    }
    const answer = this.#query(node);
    this.#nodes.set(node, { at: clock.monotonic(), answer });
    return answer;
  }

  async #query(node: string): Promise<ReadonlyMap<string, PodReading>> {
    const { addressOf, clock, kubelets, onRead } = this.#options;
    const address = addressOf(node);
    if (address === undefined) {
      return new Map();
    }
    const stop = new AbortController();
    const late = Promise.withResolvers<never>();
    const timer = clock.setTimeout(() => {
      late.reject(new Error("the kubelet took too long"));
      stop.abort();
    }, LIMIT_MS);
    try {
      const answer = await Promise.race([kubelets.readPods(address, stop.signal), late.promise]);
      onRead?.("success");
      return answer;
    } catch (error) {
      onRead?.("error");
      throw error;
    } finally {
      timer.cancel();
    }
  }
}

/** What a kubelet reported of a pod. */
export function resourceOf(reading: PodReading | undefined): SnapshotResource {
  const { container, volumes } = reading ?? {};
  const data = volumes?.get(DATA);
  const { cpu, memory } = container ?? {};
  return {
    cpu_usage_cores: cpu?.nanoCores === undefined ? null : cpu.nanoCores / 1e9,
    memory_usage_bytes: memory?.workingSetBytes ?? null,
    storage_used_bytes: data?.usedBytes ?? null,
    storage_capacity_bytes: data?.capacityBytes ?? null,
  };
}
