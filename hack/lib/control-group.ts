/** Control groups, which share out the processors: of version 1, or 2 where its controller of processors is on. */
import { mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

interface Hierarchy {
  readonly root: string;
  readonly file: string;
  /** Of shares, as the kubelet converts them: https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/2254-cgroup-v2 */
  readonly weight: (shares: number) => number;
  readonly quotaFile: string;
  /** Of microseconds in each 100 ms. */
  readonly quota: (microseconds: number) => string;
}

const HIERARCHIES: readonly Hierarchy[] = [
  {
    root: "/sys/fs/cgroup/cpu",
    file: "cpu.shares",
    weight: (shares) => shares,
    quotaFile: "cpu.cfs_quota_us",
    quota: String,
  },
  {
    root: "/sys/fs/cgroup",
    file: "cpu.weight",
    weight: (shares) => Math.round(1 + ((shares - 2) * 9_999) / 262_142),
    quotaFile: "cpu.max",
    quota: (microseconds) => `${microseconds} 100000`,
  },
];

/**
 * Moves a process into a control group, which is made; what it starts is in it, too. Without the right to do so nothing happens.
 * @param shares of the processors, for the whole group: the kubelet gives all pods 1,024 for each processor
 */
export async function joinControlGroup(name: string, shares: number, pid: number): Promise<void> {
  for (const { root, file, weight } of HIERARCHIES) {
    const group = join(root, name);
    try {
      await mkdir(group, { recursive: true });
      // No file is made where this is no hierarchy.
      await writeFile(join(group, file), String(weight(shares)), { flag: "r+" });
      await writeFile(join(group, "cgroup.procs"), String(pid), { flag: "r+" });
      return;
    } catch {
      // Of the other version, or not for everybody.
    }
  }
}

/**
 * Limits what a control group may use of the processors, as a container's limit does.
 * @param processors at least 0.01
 * @throws Error without the right to do so
 */
export async function limitProcessors(name: string, processors: number): Promise<void> {
  const microseconds = Math.round(processors * 100_000);
  const results = await Promise.allSettled(
    HIERARCHIES.map(({ root, quotaFile, quota }) =>
      writeFile(join(root, name, quotaFile), quota(microseconds), { flag: "r+" }),
    ),
  );
  if (results.every(({ status }) => status === "rejected")) {
    throw new Error(`cannot limit the processors of the control group ${name}; run as root`);
  }
}

/** Where a control group may be, whichever version it has. */
export const controlGroupFolders = (name: string): string[] =>
  HIERARCHIES.map(({ root }) => join(root, name));

/** Removes a control group. One that a process is in stays; what was killed just now leaves it a moment later. */
export async function removeControlGroup(name: string): Promise<void> {
  await Promise.all(controlGroupFolders(name).map((folder) => removeOnceEmpty(folder)));
}

async function removeOnceEmpty(folder: string): Promise<void> {
  for (let tries = 0; tries < 20; tries += 1) {
    try {
      await rmdir(folder);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EBUSY") {
        return;
      }
      await sleep(100);
    }
  }
}
