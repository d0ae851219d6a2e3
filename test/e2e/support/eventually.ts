import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds between attempts by default: a twentieth of the time waited so far, within these bounds. */
const EVERY = { least: 250, most: 2_000 };

/**
 * Calls `attempt` until it returns without throwing, and gives its value; the last error is the one thrown.
 * The longer it waits, the less often it attempts: polls take processors from what is waited for. A caller that must observe a
 * state that passes sets `every`. Times in milliseconds.
 */
export async function eventually<T>(
  attempt: () => Promise<T>,
  { within = 240_000, every }: { within?: number; every?: number } = {},
): Promise<T> {
  const start = performance.now();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const waited = performance.now() - start;
      if (waited > within) {
        throw error;
      }
      await sleep(every ?? Math.min(EVERY.most, Math.max(EVERY.least, waited / 20)));
    }
  }
}
