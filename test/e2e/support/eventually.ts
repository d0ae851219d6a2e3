import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds between attempts where nothing is asked for: a twentieth of what was waited already, between these. */
const EVERY = { least: 250, most: 2_000 };

/**
 * Calls `attempt` until it returns without throwing, and gives its value; the last error is the one thrown.
 * Whoever waits for a moment that passes names how often it is attempted; the longer others wait, the less often they ask, since
 * their questions cost what they wait for its processors. Times in milliseconds.
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
      if (waited > within) throw error;
      await sleep(every ?? Math.min(EVERY.most, Math.max(EVERY.least, waited / 20)));
    }
  }
}
