/** Rights that have only just been given: the apiserver learns of a binding by a watch of its own, and refuses until then. */

import { setTimeout as sleep } from "node:timers/promises";
import { isForbidden } from "./errors.ts";

/** How long is waited for in all, and between two tries, in milliseconds. */
const LIMIT_MS = 4_000;
const BETWEEN_MS = 200;

/** Whether a right is missing, as the apiserver's authorizer tells: quotas and other guards refuse with 403, too. */
export function isUnbound(error: unknown): boolean {
  return isForbidden(error) && /\bcannot [a-z]+ resource "/.test(error.message);
}

/**
 * Does what can be done again, until it is not refused for a right that is missing, for 4 s at most.
 * @throws what the last try threw
 */
export async function onceBound<T>(work: () => Promise<T>): Promise<T> {
  const end = performance.now() + LIMIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnbound(error) || performance.now() + BETWEEN_MS > end) {
        throw error;
      }
    }
    await sleep(BETWEEN_MS);
  }
}
