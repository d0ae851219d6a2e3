import { writeFile } from "node:fs/promises";

/** The share of the processors of this process's session; see `hack/lib/nice.ts`. */
const AUTOGROUP = "/proc/self/autogroup";

/**
 * Runs the work of the measuring process with priority over all others: clients have processors of their own, and a request that waits
 * for this process's turn shows nothing about the platform. Without the right to, it is measured as it comes.
 */
export async function measuredFirst<T>(work: () => Promise<T>): Promise<T> {
  const setNice = (nice: number) => writeFile(AUTOGROUP, String(nice)).catch(() => undefined);
  await setNice(-20);
  try {
    return await work();
  } finally {
    await setNice(0);
  }
}
