import { setTimeout as sleep } from "node:timers/promises";

/** Thrown by a probe for which waiting longer is no use. */
export class GiveUp extends Error {}

/**
 * Calls `probe` again and again until it returns something other than `undefined` or `false`.
 * What it throws counts as "not yet" and is named when time runs out; a {@link GiveUp} ends it immediately.
 * @throws Error naming `what` after `timeoutMs`
 */
export async function waitFor<T>(
  what: string,
  timeoutMs: number,
  probe: () => Promise<T | undefined | false>,
  everyMs = 200,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const answer = await probe();
      if (answer !== undefined && answer !== false) {
        return answer;
      }
    } catch (error) {
      if (error instanceof GiveUp) {
        throw new Error(`${what}: ${error.message}`);
      }
      last = error;
    }
    if (performance.now() >= end) {
      const why = last instanceof Error ? ` (${last.message.split("\n")[0]})` : "";
      throw new Error(`${what}: not within ${Math.round(timeoutMs / 1000)} s${why}`);
    }
    await sleep(everyMs);
  }
}
