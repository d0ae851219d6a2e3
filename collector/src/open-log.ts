import { type FileHandle, open } from "node:fs/promises";
import { decompressed, identityOfOpen, isDamage, type KnownFile } from "./log-files.ts";

/** Bytes of one read. */
const CHUNK = 256 * 1024;

/** A line of a file, without its end, and where the next one begins; undefined for what has no end within bounds. */
interface RawLine {
  text: Buffer | undefined;
  end: number;
}

/** A file that is being read; it stays readable when it is renamed or removed. */
export interface OpenFile {
  identity: string;
  /** Whether the last read found the end, for now. */
  isAtEnd: boolean;
  /** Whether the last read found that the rest cannot be read: it is at its end, too. */
  isDamaged: boolean;
  readLines(): Promise<RawLine[]>;
  /** Whether there is more than has been read. */
  hasMore(): Promise<boolean>;
  close(): Promise<void>;
}

/** @returns undefined when the file is removed or renamed */
export async function openLog({ file, identity }: KnownFile, offset: number): Promise<OpenFile | undefined> {
  if (file.isCompressed) {
    return new CompressedLog(file.path, identity, offset);
  }
  try {
    const handle = await open(file.path);
    // It may have been rotated since its first line was read.
    if ((await identityOfOpen(handle)) === identity) {
      return new PlainLog(handle, identity, offset);
    }
    await handle.close();
    return undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}

/** Splits what was read at the ends of lines. @returns lines, and how many bytes at the end belong to none yet */
function splitLines(chunk: Buffer, from: number): { lines: RawLine[]; rest: number } {
  const lines: RawLine[] = [];
  let start = 0;
  for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
    lines.push({ text: chunk.subarray(start, end), end: from + end + 1 });
    start = end + 1;
  }
  // No runtime writes such a line: it is passed over, so that those after it are read.
  if (lines.length === 0 && chunk.length >= CHUNK) {
    return { lines: [{ text: undefined, end: from + chunk.length }], rest: 0 };
  }
  return { lines, rest: chunk.length - start };
}

class PlainLog implements OpenFile {
  readonly identity: string;
  isAtEnd = false;
  readonly isDamaged = false;
  readonly #handle: FileHandle;
  #offset: number;
  /** What the last read did not hand on: one at the end, several times a second, leaves no garbage. */
  #unused: Buffer | undefined;

  constructor(handle: FileHandle, identity: string, offset: number) {
    this.#handle = handle;
    this.identity = identity;
    this.#offset = offset;
  }

  async readLines(): Promise<RawLine[]> {
    const chunk = this.#unused ?? Buffer.allocUnsafe(CHUNK);
    this.#unused = undefined;
    const { bytesRead } = await this.#handle.read(chunk, 0, CHUNK, this.#offset);
    this.isAtEnd = bytesRead < CHUNK;
    const { lines } = splitLines(chunk.subarray(0, bytesRead), this.#offset);
    this.#unused = lines.length === 0 ? chunk : undefined;
    this.#offset = lines.at(-1)?.end ?? this.#offset;
    return lines;
  }

  async hasMore(): Promise<boolean> {
    return (await this.#handle.stat()).size > this.#offset;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

class CompressedLog implements OpenFile {
  readonly identity: string;
  isAtEnd = false;
  isDamaged = false;
  readonly #stream: ReturnType<typeof decompressed>;
  readonly #parts: AsyncIterator<Buffer>;
  /** Where in the file what is held begins, and how much of it has been read before. */
  #at = 0;
  readonly #start: number;
  #held: Buffer = Buffer.alloc(0);

  constructor(path: string, identity: string, offset: number) {
    this.identity = identity;
    this.#start = offset;
    this.#stream = decompressed(path);
    this.#parts = this.#stream[Symbol.asyncIterator]();
  }

  async readLines(): Promise<RawLine[]> {
    const { value, done } = await this.#nextPart();
    this.isAtEnd = done === true;
    if (done) {
      return [];
    }
    this.#held = Buffer.concat([this.#held, value]);
    const skipped = Math.min(Math.max(this.#start - this.#at, 0), this.#held.length);
    this.#at += skipped;
    const { lines, rest } = splitLines(this.#held.subarray(skipped), this.#at);
    this.#at += this.#held.length - skipped - rest;
    this.#held = Buffer.from(this.#held.subarray(this.#held.length - rest));
    return lines;
  }

  async #nextPart(): Promise<IteratorResult<Buffer>> {
    this.isDamaged = false;
    try {
      return await this.#parts.next();
    } catch (error) {
      if (!isDamage(error)) {
        throw error;
      }
      this.isDamaged = true;
      return { done: true, value: undefined };
    }
  }

  async hasMore(): Promise<boolean> {
    return !this.isAtEnd;
  }

  async close(): Promise<void> {
    this.#stream.destroy();
  }
}
