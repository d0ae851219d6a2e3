/** Which databases' volumes are full, as the kubelets report. */

import type { Store } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import { type Clock, sleep } from "@slipway/process";
import type { Resources } from "./resources.ts";
import type { DatabasePod } from "./targets.ts";

/** Shares of a volume, in percent: full from the one on, and until less than the other is used. */
const FULL_PERCENT = 97;
const FREE_PERCENT = 95;

const PERIOD_MS = 20_000;
/** Requests under way; one answer of a kubelet serves all pods of its node. */
const AT_ONCE = 32;

export class FullVolumes {
  #full: ReadonlySet<string> = new Set();

  /** Whether the volume of the pod with this uid is full. */
  has(podUid: string): boolean {
    return this.#full.has(podUid);
  }

  /**
   * Takes over what was read, by uid of the pod: the percentage that is used. What could not be read stays as it was, and
   * pods that are not named are forgotten.
   * @returns uids of pods of which it is another answer now
   */
  observe(used: ReadonlyMap<string, number | undefined>): string[] {
    const full = [...used].filter(([uid, percent]) => this.#isFull(uid, percent)).map(([uid]) => uid);
    const now = new Set(full);
    const changed = [...used.keys()].filter((uid) => now.has(uid) !== this.#full.has(uid));
    this.#full = now;
    return changed;
  }

  #isFull(uid: string, percent: number | undefined): boolean {
    const was = this.#full.has(uid);
    return percent === undefined ? was : percent >= (was ? FREE_PERCENT : FULL_PERCENT);
  }
}

export interface VolumeWatchOptions {
  pods: Pick<Store<DatabasePod>, "list">;
  resources: Pick<Resources, "of">;
  full: FullVolumes;
  /** A project's volumes have become full, or have room again. */
  onChange(project: { namespace: string; name: string }): void;
  clock: Clock;
}

/** Reads how full volumes are, again and again. Ends when the signal aborts. */
export async function watchVolumes(options: VolumeWatchOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await readVolumes(options);
    await sleep(options.clock, PERIOD_MS, signal);
  }
}

/** One round. Never rejects. */
export async function readVolumes({ pods, resources, full, onChange }: VolumeWatchOptions): Promise<void> {
  const all = pods.list();
  const used = new Map<string, number | undefined>();
  const left = [...all];
  const reader = async () => {
    for (let pod = left.pop(); pod; pod = left.pop()) {
      const { uid } = pod.metadata;
      const { storage_used_bytes: bytes, storage_capacity_bytes: capacity } = await resources.of({
        node: pod.node,
        podUid: uid,
      });
      used.set(uid, bytes === null || capacity === null ? undefined : (100 * bytes) / capacity);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, reader));
  const changed = new Set(full.observe(used));
  for (const { metadata } of all) {
    const name = metadata.labels?.[labels.project];
    if (changed.has(metadata.uid) && name !== undefined) {
      onChange({ namespace: metadata.namespace, name });
    }
  }
}
