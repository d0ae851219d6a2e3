/** The interface of what builds images from Dockerfiles: BuildKit or buildah. */

import type { Log, OutputLines } from "../log/writer.ts";

export interface BuildRequest {
  /** Folder that the Dockerfile may copy from. */
  context: string;
  /** Folder with `Dockerfile`, and `Dockerfile.dockerignore` where it replaces the repository's own. */
  dockerfile: string;
  /** Files by the id of the secret. */
  secrets: Record<string, string>;
  args: Record<string, string>;
  /** Commands of the steps, by `<stage> <steps after it>`, where known. */
  commands: Record<string, string>;
  /** Folder to write the image to, as an OCI layout. */
  output: string;
  timeoutMs: number;
  signal?: AbortSignal;
}

/** Receives the progress of a build. */
export interface BuildListener {
  /** Called when a step of the Dockerfile begins, or was found in the cache. */
  step(name: string, cached: boolean): void;
  /** Opens the sink of a step's output; the backend ends it. */
  output(): OutputLines;
}

/** The result of a build. */
export type BuildOutcome =
  | { ok: true }
  | {
      ok: false;
      timedOut: boolean;
      /** Name of the stage that failed, undefined when none did. */
      stage?: string;
      /** The step as its author wrote it. */
      step?: string;
      exitCode?: number;
      /** End of the step's output, or the backend's own error. */
      text: string;
    };

export interface BuilderBackend {
  build(request: BuildRequest, listener: BuildListener): Promise<BuildOutcome>;
  /** Stops every process that the backend started. */
  close(): Promise<void>;
}

/** A backend did not start, or stopped: a fault of the platform. */
export class BackendUnavailable extends Error {
  override name = "BackendUnavailable";
}

// A backend that starts before it is needed, while the source is still being fetched.

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
