/** An engine that starts before anybody builds with it: while the source is still being fetched. */

import type { Log } from "../log/writer.ts";
import type { Engine } from "./backend.ts";

/** Starts an engine, has it used, and ends it. @throws EngineUnavailable, or what its use threw */
export type WithEngine = (log: Pick<Log, "info">, use: (engine: Engine) => Promise<void>) => Promise<void>;

export class EarlyEngine {
  readonly #started = Promise.withResolvers<Engine>();
  /** Its use is over, well or not. */
  readonly #over = Promise.withResolvers<void>();
  readonly #ended: Promise<void>;
  /** What it said before anybody had a log for it. */
  readonly #said: string[] = [];

  constructor(open: WithEngine) {
    // Told to whoever uses it.
    this.#started.promise.catch(() => undefined);
    this.#over.promise.catch(() => undefined);
    this.#ended = open({ info: (message) => void this.#said.push(message) }, async (engine) => {
      this.#started.resolve(engine);
      await this.#over.promise;
    }).catch((error: unknown) => this.#started.reject(error));
  }

  /** Has it used, once. */
  readonly use: WithEngine = async (log, work) => {
    try {
      const engine = await this.#started.promise.finally(() => {
        for (const message of this.#said) {
          log.info(message);
        }
      });
      await work(engine);
    } catch (error) {
      this.#over.reject(error);
      throw error;
    }
  };

  /** Ends it, used or not. Never rejects. */
  async close(): Promise<void> {
    this.#over.resolve();
    await this.#ended;
  }
}
