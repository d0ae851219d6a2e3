import type { Logger } from "@slipway/process";
import type { Runnable } from "./options.ts";

/** What runs beside the controllers. */
export class Runnables {
  readonly #log: Logger;
  readonly #runnables: Runnable[] = [];

  readonly #isFirstShard: boolean;

  constructor(log: Logger, isFirstShard: boolean) {
    this.#log = log;
    this.#isFirstShard = isFirstShard;
  }

  add(runnable: Runnable): void {
    this.#runnables.push(runnable);
  }

  /**
   * Starts those of every process, or those of the leader of this shard.
   * @param fail called with the error of one that threw
   */
  start(of: "all" | "leader", signal: AbortSignal, fail: (error: unknown) => void): Promise<void>[] {
    const which = this.#runnables.filter(
      ({ leaderOnly = true, everyShard = false }) =>
        leaderOnly === (of === "leader") && (!leaderOnly || everyShard || this.#isFirstShard),
    );
    return which.map(async (runnable) => {
      try {
        await runnable.run(signal);
      } catch (error) {
        this.#log.error({ err: error, runnable: runnable.name }, "runnable failed");
        fail(error);
      }
    });
  }
}
