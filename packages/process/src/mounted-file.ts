/** A file of a mounted ConfigMap or Secret as a process sees it: read at start, read again when it changes. */

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Gauge, type Registry } from "prom-client";

/** How often the file is read, in milliseconds. A mount changes by swapped links, which file watches miss. */
const POLL_MS = 5_000;

/** A change is read again after so many milliseconds: one that is being written may be a good, shorter one so far. */
const WRITTEN_MS = 200;

/** How long a file that is wrong at the start may be one that is still being written, in milliseconds. */
const START_MS = 5_000;

/** Where it reports; a pino logger is one. */
interface Log {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What the file says now. A version that cannot be read or parsed changes nothing: the last good one stays. */
export class MountedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  readonly #log: Log;
  readonly #listeners = new Set<() => void>();
  #text: string;
  #current: T;
  /** Whether the text of the last reload is what `current` was made of. */
  #isGood = true;
  #isReadable = true;

  private constructor(path: string, parse: (text: string) => T, log: Log, text: string) {
    this.#path = path;
    this.#parse = parse;
    this.#log = log;
    this.#text = text;
    this.#current = this.#parsed(text);
  }

  /**
   * @param startMs for how long a file that is wrong is read again
   * @throws Error that names the file and what reading or `parse` said: there is no good version to start with
   */
  static async open<T>(
    path: string,
    parse: (text: string) => T,
    log: Log,
    startMs = START_MS,
  ): Promise<MountedFile<T>> {
    const end = performance.now() + startMs;
    for (;;) {
      const text = await readFile(path, "utf8");
      try {
        return new MountedFile(path, parse, log, text);
      } catch (error) {
        if (performance.now() >= end) {
          throw error;
        }
      }
      await sleep(WRITTEN_MS);
    }
  }

  /** Opens the file that a setting names; undefined when the setting does. @throws Error as `open` does */
  static async openOptional<T>(
    path: string | undefined,
    parse: (text: string) => T,
    log: Log,
  ): Promise<MountedFile<T> | undefined> {
    return path === undefined ? undefined : await MountedFile.open(path, parse, log);
  }

  get path(): string {
    return this.#path;
  }

  /** Whether `current` is what the file said when it was last read: false while it is invalid or missing. */
  get isCurrent(): boolean {
    return this.#isGood && this.#isReadable;
  }

  get current(): T {
    return this.#current;
  }

  /** Calls back after each change. Returns how to stop that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Follows the file until the signal aborts. Never rejects. */
  async run(signal: AbortSignal, pollMs = POLL_MS): Promise<void> {
    while (!signal.aborted) {
      await sleep(pollMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted) {
        await this.reload();
      }
    }
  }

  /** Reads the file once more. */
  async reload(): Promise<void> {
    try {
      const text = await this.#read();
      if (text === this.#text || !(await this.#isWritten(text))) {
        return;
      }
      // A wrong text is complained about once, not every few seconds.
      this.#text = text;
      this.#isGood = false;
      this.#current = this.#parsed(text);
      this.#isGood = true;
    } catch (error) {
      this.#log.error({ err: error, file: this.#path }, "file cannot be used, keeping the last good version");
      return;
    }
    this.#log.info({ file: this.#path }, "file reloaded");
    for (const listener of this.#listeners) {
      this.#notify(listener);
    }
  }

  /** Only a read that failed says that there is no file: metrics are scraped while one is in progress. */
  async #read(): Promise<string> {
    try {
      const text = await readFile(this.#path, "utf8");
      this.#isReadable = true;
      return text;
    } catch (error) {
      this.#isReadable = false;
      throw error;
    }
  }

  /** Whether the file still says the same; otherwise the next reload reads it. */
  async #isWritten(text: string): Promise<boolean> {
    await sleep(WRITTEN_MS);
    return (await readFile(this.#path, "utf8")) === text;
  }

  /** One listener that fails keeps no other from the change, and says nothing about the file. */
  #notify(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#log.error({ err: error, file: this.#path }, "a listener failed after the file was reloaded");
    }
  }

  #parsed(text: string): T {
    try {
      return this.#parse(text);
    } catch (error) {
      throw new Error(`${this.#path} is wrong: ${(error as Error).message}`, { cause: error });
    }
  }
}

/** Registers which mounted files a process could take over when it last read them; those that it does not have are left out. */
export function registerFiles(
  registry: Registry,
  files: readonly (Pick<MountedFile<unknown>, "path" | "isCurrent"> | undefined)[],
): void {
  new Gauge({
    name: "slipway_config_last_reload_successful",
    help: "Whether the version of a settings file that is there is in use: 0 while an earlier one is, since it cannot be read or is wrong.",
    labelNames: ["file"],
    registers: [registry],
    collect() {
      for (const file of files) {
        if (file) {
          this.set({ file: basename(file.path) }, file.isCurrent ? 1 : 0);
        }
      }
    },
  });
}
