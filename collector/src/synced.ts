import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds between checks of a cache. */
const POLL_INTERVAL_MS = 50;

/** Resolves when a cache has all objects, or when the signal aborts. Never rejects. */
export async function untilSynced(
  cache: { readonly hasSynced: boolean },
  signal: AbortSignal,
): Promise<void> {
  while (!cache.hasSynced && !signal.aborted) {
    await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}
