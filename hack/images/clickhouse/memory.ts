import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";

/** Files in which the kernel shows the limit of a container, as its second and its first version do. */
const FILES = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/** What this process takes beside its statements, the engine's code for the most part. */
const OWN_BYTES = 384 * 1024 * 1024;

/** The container's limit in bytes; undefined where there is none. */
export async function memoryLimit(): Promise<number | undefined> {
  const found = await Promise.all(FILES.map((file) => readFile(file, "utf8").catch(() => "max")));
  const limits = found.map(Number).filter((bytes) => bytes > 0 && bytes < totalmem());
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** How much of a container's limit statements may take: what is left, but half of it in any case. */
export function engineMemory(limit: number | undefined): number | undefined {
  return limit === undefined ? undefined : Math.floor(Math.max(limit - OWN_BYTES, limit / 2));
}
