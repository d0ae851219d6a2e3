/** The engine's side, seen from the agent: a named pipe, and files that record how its program ended. */

import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { workFiles } from "./protocol.ts";

const LOOK_EVERY_MS = 50;
const CHUNK_BYTES = 1 << 20;
/** After a program's end, what it has opened is visible within this time, in milliseconds. */
const OPENED_MS = 2_000;

/** The engine's program has ended, though nothing has come, or nothing can go, through the pipe. */
export class EngineEnded extends Error {
  override name = "EngineEnded";

  /** @param code undefined when it ended without one: killed, as for want of memory */
  constructor(code: number | undefined) {
    super(code === undefined ? "was killed" : `ended with exit code ${code}`);
  }
}

export class EngineSide {
  readonly #folder: string;

  /** @param folder that both containers share */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Waits for the pipe, which the engine's container makes first. @throws EngineEnded when it ends without */
  async awaitPipe(): Promise<void> {
    while (!(await this.#hasPipe())) {
      const code = await this.#exitCode();
      if (code !== undefined) {
        throw new EngineEnded(code);
      }
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** What comes out of the pipe, once the engine's program writes to it. @throws EngineEnded when it ends without */
  async read(): Promise<Readable> {
    return this.#opened(createReadStream(this.#path("data"), { highWaterMark: CHUNK_BYTES }));
  }

  /** The pipe, once the engine's program reads from it. @throws EngineEnded when it ends without */
  async write(): Promise<Writable> {
    return this.#opened(createWriteStream(this.#path("data"), { highWaterMark: CHUNK_BYTES }));
  }

  /** The system opens a pipe once somebody has opened its other end: a program that has ended never will. */
  async #opened<T extends Readable | Writable>(pipe: T): Promise<T> {
    const done = new AbortController();
    const { signal } = done;
    const watch = async (): Promise<never> => {
      const code = await this.awaitExit({ signal });
      await sleep(OPENED_MS, undefined, { signal });
      throw new EngineEnded(code);
    };
    const watching = watch();
    watching.catch(() => undefined);
    try {
      await Promise.race([once(pipe, "open"), watching]);
      return pipe;
    } finally {
      done.abort();
    }
  }

  /**
   * The exit code of the engine's program, once it has ended.
   * @param options `limitMs`: after which it counts as ended
   * @throws EngineEnded when it is
   */
  async awaitExit(options: { signal?: AbortSignal; limitMs?: number } = {}): Promise<number> {
    const { signal, limitMs = Number.POSITIVE_INFINITY } = options;
    const began = Date.now();
    for (;;) {
      const code = await this.#exitCode();
      if (code !== undefined) {
        return code;
      }
      if (Date.now() - began > limitMs) {
        throw new EngineEnded(undefined);
      }
      await sleep(LOOK_EVERY_MS, undefined, { signal });
    }
  }

  /** Lines about what is in the dump. @throws Error when there are none */
  counts(): Promise<string> {
    return readFile(this.#path("contents"), "utf8");
  }

  async #exitCode(): Promise<number | undefined> {
    const text = await readFile(this.#path("exit"), "utf8").catch(() => "");
    return /^[0-9]+\n$/.test(text) ? Number(text) : undefined;
  }

  async #hasPipe(): Promise<boolean> {
    const found = await stat(this.#path("data")).catch(() => undefined);
    return found?.isFIFO() === true;
  }

  #path(file: keyof typeof workFiles): string {
    return join(this.#folder, workFiles[file]);
  }
}
