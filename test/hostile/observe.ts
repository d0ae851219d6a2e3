/** The platform's processes while attackers are at work: how often each began again, and how much memory each used. */
import { glob, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { V1Pod } from "@kubernetes/client-node";
import { cluster } from "../e2e/support/cluster.ts";
import { bytesOf, type Process } from "./process.ts";

/** Namespaces of the platform's own pods. */
export const platformNamespaces = ["slipway-system", "slipway-ingress", "slipway-collector"];

/** Files of a container's memory in its control group: those of version 1, or of version 2. */
interface MemoryFiles {
  readonly usage: string;
  readonly stat: string;
}

async function memoryFiles(containerId: string): Promise<MemoryFiles | undefined> {
  for await (const folder of glob(`/sys/fs/cgroup/{memory/,}kubepods*/**/*${containerId}*`)) {
    const isFirst = folder.startsWith("/sys/fs/cgroup/memory/");
    return {
      usage: `${folder}/${isFirst ? "memory.usage_in_bytes" : "memory.current"}`,
      stat: `${folder}/memory.stat`,
    };
  }
  return undefined;
}

/** What counts against the limit and cannot be dropped: as kubelets count a working set. */
async function workingSet({ usage, stat }: MemoryFiles): Promise<number> {
  const [used, details] = await Promise.all([readFile(usage, "utf8"), readFile(stat, "utf8")]);
  const inactive = /^inactive_file ([0-9]+)$/m.exec(details);
  return Number(used) - Number(inactive?.[1] ?? 0);
}

interface Watched extends Process {
  memoryPeak: number;
  files?: MemoryFiles;
}

/** Samples until it is stopped. */
export class Observer {
  readonly #namespaces: readonly string[];
  readonly #stop = new AbortController();
  readonly #watched = new Map<string, Watched>();
  readonly #done: Promise<unknown>;

  /** @param namespaces whose pods are watched */
  constructor(namespaces: readonly string[] = platformNamespaces) {
    this.#namespaces = namespaces;
    this.#done = Promise.all([
      this.#every(2_000, () => this.#list()),
      this.#every(200, () => this.#sample()),
    ]);
  }

  /** The processes as they are now, with the highest memory since the last call. */
  async take(): Promise<Process[]> {
    await this.#list();
    await this.#sample();
    const taken = [...this.#watched.values()].map(({ files: _, ...one }) => one);
    for (const one of this.#watched.values()) {
      one.memoryPeak = 0;
    }
    return taken.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #every(milliseconds: number, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      // A busy cluster answers late: the next turn has what this one has not.
      await work().catch(() => undefined);
      await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
    }
  }

  async #list(): Promise<void> {
    const pods = await Promise.all(
      this.#namespaces.map((namespace) => cluster.core.listNamespacedPod({ namespace })),
    );
    for (const pod of pods.flatMap(({ items }) => items)) {
      await this.#note(pod);
    }
  }

  async #note({ metadata, spec, status }: V1Pod): Promise<void> {
    for (const { name, resources } of spec?.containers ?? []) {
      const state = status?.containerStatuses?.find((one) => one.name === name);
      const id = state?.containerID?.replace(/^.*:\/\//, "") ?? "";
      // A run of a CronJob ends: that is no process that serves.
      if (id === "" || spec?.restartPolicy === "Never") {
        continue;
      }
      const key = `${metadata?.name}/${name}`;
      const before = this.#watched.get(key);
      const isSame = before?.restarts === state?.restartCount && before?.files !== undefined;
      this.#watched.set(key, {
        name: key,
        restarts: state?.restartCount ?? 0,
        lastEnd: state?.lastState?.terminated?.reason,
        memoryLimit: resources?.limits?.memory === undefined ? undefined : bytesOf(resources.limits.memory),
        memoryPeak: before?.memoryPeak ?? 0,
        files: isSame ? before?.files : await memoryFiles(id),
      });
    }
  }

  async #sample(): Promise<void> {
    await Promise.all(
      [...this.#watched.values()].map(async (one) => {
        if (one.files === undefined) {
          return;
        }
        const used = await workingSet(one.files).catch(() => 0);
        const now = this.#watched.get(one.name);
        if (now) {
          now.memoryPeak = Math.max(now.memoryPeak, used);
        }
      }),
    );
  }
}
