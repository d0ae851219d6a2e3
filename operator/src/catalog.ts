/** The plan catalog as this process sees it: read at start, read again when the file changes. */

import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Catalog, catalog as schema } from "@slipway/crds";
import { parse } from "yaml";
import { z } from "zod";
import type { Logger } from "./runtime/index.ts";

/** How often the file is looked at. A mounted ConfigMap changes by swapped links, which file watches miss. */
const POLL_MS = 5_000;

/** The catalog in force. A file that becomes wrong changes nothing: the last good catalog stays. */
export class CatalogFile {
  readonly #path: string;
  readonly #log: Logger;
  readonly #listeners = new Set<() => void>();
  #text: string;
  #current: Catalog;

  constructor(path: string, text: string, current: Catalog, log: Logger) {
    this.#path = path;
    this.#text = text;
    this.#current = current;
    this.#log = log;
  }

  /** @throws Error naming the file and everything that is wrong in it */
  static async open(path: string, log: Logger): Promise<CatalogFile> {
    const text = await readFile(path, "utf8");
    return new CatalogFile(path, text, parseCatalog(text, path), log);
  }

  get current(): Catalog {
    return this.#current;
  }

  /** Calls back after each change. Returns how to stop that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Follows the file until the signal aborts. */
  async run(signal: AbortSignal, pollMs = POLL_MS): Promise<void> {
    while (!signal.aborted) {
      await sleep(pollMs, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) {
        await this.reload();
      }
    }
  }

  /** Reads the file once more. */
  async reload(): Promise<void> {
    try {
      const text = await readFile(this.#path, "utf8");
      if (text === this.#text) {
        return;
      }
      // A wrong text is complained about once, not every few seconds.
      this.#text = text;
      this.#current = parseCatalog(text, this.#path);
      this.#log.info({}, "plan catalog reloaded");
      for (const listener of this.#listeners) {
        listener();
      }
    } catch (error) {
      this.#log.error({ err: error }, "plan catalog cannot be used, keeping the last good one");
    }
  }
}

function parseCatalog(text: string, path: string): Catalog {
  const parsed = schema.safeParse(parse(text));
  if (!parsed.success) {
    throw new Error(`The plan catalog ${path} is wrong:\n${z.prettifyError(parsed.error)}`);
  }
  return parsed.data;
}
