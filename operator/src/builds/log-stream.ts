import type { Container } from "@slipway/builder/contract";
import { KubeError } from "@slipway/controller-runtime";
import type { BuildLogChunk } from "@slipway/ledger";

/** Which container's log it is, and of which build. */
export interface LogSource {
  organizationId: string;
  projectId: string;
  buildId: string;
  namespace: string;
  podName: string;
  podUid: string;
  attempt: number;
}

export type BuildOfLog = Pick<LogSource, "organizationId" | "buildId">;

export interface LogStream {
  source: LogSource;
  isStored: boolean;
  /** The container has marked the end of its log, and all of it is stored. */
  isFinal: boolean;
  truncated: boolean;
  /** Last sequence that the ledger has, with all before it. */
  stored: number;
  /** Aborts once the container is known to have terminated: a reading from then on is complete. */
  ended: AbortController;
  stop: AbortController;
  /** Resolves once all lines are in the ledger, or reading has stopped. */
  finished: PromiseWithResolvers<void>;
}

export const keyOf = ({ podUid }: LogSource, container: Container): string => `${podUid}/${container}`;

/** The pod or its node no longer exists, or the container never started. */
export const isGone = (error: unknown): boolean =>
  error instanceof KubeError && (error.status === 404 || error.status === 400);

// Batches lines of a build's log on their way to the ledger.

/** How long lines wait for others, so that each statement writes many. */
const BATCH_MS = 200;
const BATCH_LINES = 500;

/** Lines were read, but the ledger did not store them. */
export class LogNotStoredError extends Error {
  override name = "LogNotStoredError";

  constructor(cause: unknown) {
    super("the ledger did not take lines of a build's log", { cause });
  }
}

/** Writes lines to the ledger: one statement at a time, shortly after the first of them arrived. */
export class LogBatch {
  readonly #write: (chunks: readonly BuildLogChunk[]) => Promise<unknown>;
  #waiting: BuildLogChunk[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #error: LogNotStoredError | undefined;

  constructor(write: (chunks: readonly BuildLogChunk[]) => Promise<unknown>) {
    this.#write = write;
  }

  add(chunks: readonly BuildLogChunk[]): void {
    for (const chunk of chunks) {
      this.#waiting.push(chunk);
    }
    if (this.#waiting.length >= BATCH_LINES) {
      this.#flush();
    } else if (this.#waiting.length > 0) {
      this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS);
    }
  }

  /** Calls back once all lines so far are written, without waiting for more; never when a write has failed. */
  whenWritten(done: () => void): void {
    this.#flush();
    this.#writing = this.#writing.then(() => {
      if (this.#error === undefined) {
        done();
      }
    });
  }

  /** @throws NotStored when a write has failed */
  check(): void {
    if (this.#error !== undefined) {
      throw this.#error;
    }
  }

  /** Writes what is left. Never rejects. */
  async end(): Promise<void> {
    this.#flush();
    await this.#writing;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const chunks = this.#waiting;
    this.#waiting = [];
    if (chunks.length === 0) {
      return;
    }
    this.#writing = this.#writing.then(async () => {
      // After a failure the whole log is read again: no line may follow a missing one.
      if (this.#error !== undefined) {
        return;
      }
      try {
        await this.#write(chunks);
      } catch (error) {
        this.#error = new LogNotStoredError(error);
      }
    });
  }
}
