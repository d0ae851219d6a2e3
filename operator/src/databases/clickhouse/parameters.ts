/** What of ClickHouse's settings derives from a plan. Pure. */

import type { Database } from "../database.ts";

const MIB = 1024 * 1024;

/**
 * Settings as environment variables of a pod, so that a pod keeps its own while others are replaced: files are shared by
 * all of them, and read again while servers run.
 */
export function planVariables({ memoryBytes, cpus }: Pick<Database, "memoryBytes" | "cpus">) {
  return {
    /** All statements together; the rest is for what the server does not count. */
    SLIPWAY_SERVER_MEMORY: share(memoryBytes, 0.8),
    /** One statement. */
    SLIPWAY_QUERY_MEMORY: share(memoryBytes, 0.6),
    SLIPWAY_MARK_CACHE: share(memoryBytes, 1 / 16),
    SLIPWAY_CONCURRENT_QUERIES: String(Math.min(Math.max(Math.round(cpus * 25), 25), 200)),
  } as const;
}

/** Whole mebibytes, in bytes. */
function share(bytes: number, part: number): string {
  return String(Math.floor((bytes * part) / MIB) * MIB);
}
