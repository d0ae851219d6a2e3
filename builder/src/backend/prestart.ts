/** A backend that starts before it is needed, while the source is still being fetched. */

import type { Log } from "../log/writer.ts";
import type { BuilderBackend } from "./backend.ts";

/** Starts a backend, calls `use` with it, and closes it. @throws BackendUnavailable, or what `use` threw */
export type WithBackend = (
  log: Pick<Log, "info">,
  use: (backend: BuilderBackend) => Promise<void>,
) => Promise<void>;

export class PrestartedBackend {
  readonly #started = Promise.withResolvers<BuilderBackend>();
  /** Resolves once its use has ended. */
  readonly #useEnded = Promise.withResolvers<void>();
  readonly #ended: Promise<void>;
  /** Messages from before there was a log to write them to. */
  readonly #pendingMessages: string[] = [];

  constructor(open: WithBackend) {
    // The caller of `use` gets the error.
    this.#started.promise.catch(() => undefined);
    this.#useEnded.promise.catch(() => undefined);
    this.#ended = open({ info: (message) => void this.#pendingMessages.push(message) }, async (backend) => {
      this.#started.resolve(backend);
      await this.#useEnded.promise;
    }).catch((error: unknown) => this.#started.reject(error));
  }

  /** Uses the backend once. */
  readonly use: WithBackend = async (log, work) => {
    try {
      const backend = await this.#started.promise.finally(() => {
        for (const message of this.#pendingMessages) {
          log.info(message);
        }
      });
      await work(backend);
    } catch (error) {
      this.#useEnded.reject(error);
      throw error;
    }
  };

  /** Closes the backend, used or not. Never rejects. */
  async close(): Promise<void> {
    this.#useEnded.resolve();
    await this.#ended;
  }
}
