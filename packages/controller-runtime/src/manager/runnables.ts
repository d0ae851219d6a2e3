import type { Logger } from "@slipway/process";
import type { Runnable } from "./options.ts";

/** What runs beside the controllers. */
export class Runnables {
  readonly #log: Logger;
  readonly #runnables: Runnable[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  add(runnable: Runnable): void {
    this.#runnables.push(runnable);
  }

  /**
   * Starts those of every process, or those of the leader alone.
   * @param fail called with the error of one that threw
   */
  start(of: "all" | "leader", signal: AbortSignal, fail: (error: unknown) => void): Promise<void>[] {
    const which = this.#runnables.filter(({ leaderOnly = true }) => leaderOnly === (of === "leader"));
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
