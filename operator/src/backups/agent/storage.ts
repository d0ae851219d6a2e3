/** Where the agent keeps backups: files of a volume, or parts in an S3-compatible store. */

import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { etagsHash, type Urls } from "./protocol.ts";

export interface Taken {
  /** How many parts it was cut into. */
  parts?: number;
  /** What the store said that each of them is: see `etagsHash`. */
  etags?: string;
}

/** A place for one backup, which exists only once `commit` has resolved. */
export interface Sink {
  /** Takes all of it. */
  take(stream: Readable): Promise<Taken>;
  commit(): Promise<void>;
  /** Leaves nothing behind. */
  abort(): Promise<void>;
}

// Backups in files of a volume. A file that has its name is whole: it is written under another one before.

/** Ends the names of files that are being written. */
const PART = ".part";

/**
 * Writes a file. What an earlier try has left is removed first.
 * @param path where it is to be
 */
export async function openFile(path: string): Promise<Sink> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  await removeTries(path);
  const part = `${path}.${process.pid}-${Date.now()}${PART}`;
  const file = await open(part, "wx", 0o660);
  return {
    async take(stream: Readable) {
      await file.writeFile(stream);
      await file.sync();
      await file.close();
      return {};
    },
    async commit() {
      await rename(part, path);
      const parent = await open(folder, "r");
      await parent.sync();
      await parent.close();
    },
    async abort() {
      await file.close().catch(() => undefined);
      await rm(part, { force: true });
    },
  };
}

/** @throws when there is none */
export async function readFileStream(path: string): Promise<Readable> {
  const file = await open(path, "r");
  return file.createReadStream({ highWaterMark: 1 << 20 });
}

/** Removes a file and what tries to write it have left. */
export async function eraseFile(path: string): Promise<void> {
  await rm(path, { force: true });
  await removeTries(path);
}

async function removeTries(path: string): Promise<void> {
  const names = await readdir(dirname(path)).catch(() => []);
  const tries = names.filter((name) => name.startsWith(`${basename(path)}.`) && name.endsWith(PART));
  for (const name of tries) {
    await rm(join(dirname(path), name), { force: true });
  }
}

// Backups in an S3-compatible store, by URLs that the operator has signed: each is good for one part of one backup.

const TRIES = 5;
const PAUSE_MS = 500;
/** How long one part may take. */
const PART_MS = 15 * 60_000;

/** Reads a task's URLs; from then on this process believes the store's own authority, where there is one. */
export async function readUrls(file: string): Promise<Urls> {
  const urls = JSON.parse(await readFile(file, "utf8")) as Urls;
  if (urls.ca) {
    setDefaultCACertificates([...getCACertificates("default"), urls.ca]);
  }
  return urls;
}

/** Cuts into parts of equal size but for the last. The operator puts them together once it knows that all is well. */
export function partsSink(urls: readonly string[], partBytes: number): Sink {
  return {
    async take(stream) {
      const etags: string[] = [];
      for await (const part of cut(stream, partBytes)) {
        const url = urls[etags.length];
        if (url === undefined) {
          throw new Error("the backup is larger than its size as announced to the store");
        }
        etags.push(await put(url, part));
      }
      return { parts: etags.length, ...(etags.every(Boolean) ? { etags: etagsHash(etags) } : {}) };
    },
    commit: () => Promise.resolve(),
    abort: () => Promise.resolve(),
  };
}

/** Chunks of exactly `size` bytes; the last one may be smaller, and an empty stream is one empty chunk. */
export async function* cut(stream: AsyncIterable<Buffer>, size: number): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  let some = false;
  for await (let chunk of stream) {
    while (bytes + chunk.length >= size) {
      const fits = chunk.subarray(0, size - bytes);
      yield Buffer.concat([...held, fits]);
      some = true;
      chunk = chunk.subarray(fits.length);
      held = [];
      bytes = 0;
    }
    if (chunk.length > 0) {
      held.push(chunk);
      bytes += chunk.length;
    }
  }
  if (bytes > 0 || !some) {
    yield Buffer.concat(held);
  }
}

/** @returns the part's ETag, as the store returns it */
function put(url: string, body: Buffer): Promise<string> {
  return retried(async () => {
    const signal = AbortSignal.timeout(PART_MS);
    const response = await fetch(url, { method: "PUT", body: new Uint8Array(body), signal });
    await response.body?.cancel();
    if (!response.ok) {
      throw new Refused(response.status);
    }
    return response.headers.get("etag") ?? "";
  });
}

/** The whole backup. A connection that breaks is taken up where it broke. */
export function readUrl(url: string): Readable {
  return Readable.from(bytesOf(url), { objectMode: false, highWaterMark: 1 << 20 });
}

async function* bytesOf(url: string): AsyncGenerator<Buffer> {
  let offset = 0;
  for (let attempt = 0; ; attempt += 1) {
    try {
      const headers = offset > 0 ? { range: `bytes=${offset}-` } : undefined;
      const response = await fetch(url, { headers });
      if (!response.ok || (offset > 0 && response.status !== 206)) {
        await response.body?.cancel();
        throw new Refused(response.status);
      }
      for await (const chunk of response.body ?? []) {
        const bytes = Buffer.from(chunk as Uint8Array);
        offset += bytes.length;
        yield bytes;
      }
      return;
    } catch (error) {
      if (attempt + 1 >= TRIES || isFinal(error)) {
        throw error;
      }
      await sleep(PAUSE_MS * 2 ** attempt);
    }
  }
}

/** Contains the status alone: the URL is a secret. */
class Refused extends Error {
  override name = "Refused";
  readonly status: number;

  constructor(status: number) {
    super(`the store answered ${status}`);
    this.status = status;
  }
}

const isFinal = (error: unknown): boolean =>
  error instanceof Refused && error.status >= 400 && error.status < 500 && error.status !== 429;

async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt + 1 >= TRIES || isFinal(error)) {
        throw error;
      }
      await sleep(PAUSE_MS * 2 ** attempt);
    }
  }
}
