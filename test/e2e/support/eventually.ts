import { setTimeout as sleep } from "node:timers/promises";

/**
 * Calls `attempt` until it returns without throwing, and gives its value; the last error is the one thrown.
 * Times in milliseconds.
 */
export async function eventually<T>(
  attempt: () => Promise<T>,
  { within = 120_000, every = 500 }: { within?: number; every?: number } = {},
): Promise<T> {
  const end = performance.now() + within;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > end) throw error;
      await sleep(every);
    }
  }
}
