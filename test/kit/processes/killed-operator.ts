import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { OperatorProcess } from "./operator-process.ts";

/** How long one may take to lead, which is some ten times as long as on a machine with nothing else to do. In seconds. */
const LEADS_WITHIN_S = 240;

/**
 * Kills an operator with SIGKILL at random moments, and starts it again, until `stop`: one in four as it starts, and the others once they lead, for
 * on a busy machine none would come so far. @returns `stop`, which gives how often
 */
export function startKilling(operator: OperatorProcess) {
  const ended = new AbortController();
  let kills = 0;
  const pause = (ms: number) => sleep(ms, undefined, { signal: ended.signal }).catch(() => undefined);
  const leaders = () => readFileSync(operator.log, "utf8").split("became leader").length - 1;
  let before = 0;
  const killing = (async () => {
    while (!ended.signal.aborted) {
      for (let waited = 0; waited < LEADS_WITHIN_S && kills % 4 !== 3 && leaders() === before; waited += 1) {
        // Unless it has ended itself, it runs.
        operator.start();
        await pause(1_000);
      }
      await pause(Math.random() * 25_000);
      if (!ended.signal.aborted) {
        await operator.kill();
        before = leaders();
        operator.start();
        kills += 1;
      }
    }
  })();
  return async () => {
    ended.abort();
    await killing;
    return kills;
  };
}
