import { readFile } from "node:fs/promises";
import type { Logger } from "pino";

/** How often the file is looked at, in milliseconds. A mounted ConfigMap changes by a symbolic link, which watches miss. */
const POLL_MS = 5_000;

/**
 * What a file says, read again when it changes. A version that cannot be read or parsed is logged and the last good
 * one stays in force.
 */
export class ReloadedFile<T> {
  readonly #file: string;
  readonly #parse: (text: string) => T;
  readonly #logger: Logger;
  readonly #timer: NodeJS.Timeout;
  #text: string;
  #value: T;

  private constructor(file: string, parse: (text: string) => T, logger: Logger, text: string) {
    this.#file = file;
    this.#parse = parse;
    this.#logger = logger;
    this.#text = text;
    this.#value = parse(text);
    this.#timer = setInterval(() => void this.reload(), POLL_MS);
    this.#timer.unref();
  }

  /** @throws what reading or `parse` throws: without a first good version there is nothing to start with */
  static async open<T>(file: string, parse: (text: string) => T, logger: Logger): Promise<ReloadedFile<T>> {
    return new ReloadedFile(file, parse, logger, await readFile(file, "utf8"));
  }

  get current(): T {
    return this.#value;
  }

  /** Looks at the file now. */
  async reload(): Promise<void> {
    try {
      const text = await readFile(this.#file, "utf8");
      if (text === this.#text) return;
      this.#text = text;
      this.#value = this.#parse(text);
      this.#logger.info({ file: this.#file }, "file reloaded");
    } catch (error) {
      this.#logger.error(
        { err: error, file: this.#file },
        "file cannot be used, keeping the last good version",
      );
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
