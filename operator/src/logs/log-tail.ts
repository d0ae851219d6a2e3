import type { Readable } from "node:stream";
import { stripControlCharacters } from "@slipway/builder/contract";
import { MAX_LOG_BYTES } from "@slipway/ledger";
import { withoutKubeletMessage } from "./kubelet-messages.ts";

/** The end of a text that arrives in chunks, in bounded memory. Pure. */

/** Keeps the last bytes of its input: at most a limit and one chunk. */
export class TailBuffer {
  readonly #limit: number;
  readonly #chunks: Buffer[] = [];
  #kept = 0;
  /** Bytes pushed in all. */
  total = 0;
  /** Line feeds pushed in all. */
  lines = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(chunk: Buffer): void {
    this.total += chunk.length;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) {
      this.lines += 1;
    }
    this.#chunks.push(chunk);
    this.#kept += chunk.length;
    while (this.#kept - (this.#chunks[0]?.length ?? 0) >= this.#limit) {
      this.#kept -= this.#chunks.shift()?.length ?? 0;
    }
  }

  /** The last bytes, at most the limit. */
  bytes(): Buffer {
    const all = Buffer.concat(this.#chunks);
    return all.subarray(Math.max(0, all.length - this.#limit));
  }
}

/**
 * The end of a log as text. Bytes that are no UTF-8 become U+FFFD.
 * @param cut whether bytes before these were left out: the first ones may be the rest of a character, which is left out too
 */
export function tailText(bytes: Buffer, cut: boolean): string {
  let start = 0;
  // Bytes 10xxxxxx continue a character, which has at most three of them.
  while (cut && start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) {
    start += 1;
  }
  return bytes.subarray(start).toString("utf8");
}

/** The end of a log as a status keeps it: without control characters and the line feeds at its end. @param limit in bytes */
export function lastLinesOf(text: string, limit: number): string {
  const bytes = Buffer.from(stripControlCharacters(text).trimEnd());
  const isCut = bytes.length > limit;
  return tailText(isCut ? bytes.subarray(-limit) : bytes, isCut);
}

/** The end of a log that is followed while its container writes it. */

/** After so many bytes reading is aborted: one container that writes so much must not delay the others. */
const MAX_BYTES = 16 * 1024 * 1024;

export class FollowedTail {
  /** Resolves once the container has ended, or reading has failed. Never rejects. */
  readonly ended: Promise<void>;
  /** Resolves with true once all requested lines were read and earlier ones are needed too, otherwise with false, at the end at the latest. */
  readonly needsEarlierLines: Promise<boolean>;
  readonly #tail = new TailBuffer(MAX_LOG_BYTES);
  /** Reading has failed or was aborted. */
  #failed = false;

  /**
   * @param body is read immediately
   * @param tailLines number of earlier lines that were requested
   */
  constructor(body: Readable, tailLines: number) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.needsEarlierLines = promise;
    this.ended = this.#read(body, () => {
      if (this.#tail.lines >= tailLines) {
        resolve(this.#tail.total < MAX_LOG_BYTES);
      }
    }).finally(() => resolve(false));
  }

  /** Whether all was read, as far as is known. */
  get whole(): boolean {
    return !this.#failed && this.text() !== undefined;
  }

  /** What was read so far, at most 51,200 bytes; undefined when that is nothing that the container wrote. */
  text(): string | undefined {
    const all = tailText(this.#tail.bytes(), this.#tail.total > MAX_LOG_BYTES);
    const text = withoutKubeletMessage(all);
    return text === "" && (all !== "" || this.#failed) ? undefined : text;
  }

  /** Never rejects. */
  async #read(body: Readable, onChunk: () => void): Promise<void> {
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        this.#tail.push(chunk);
        onChunk();
        if (this.#tail.total <= MAX_BYTES) {
          continue;
        }
        this.#failed = true;
        return;
      }
    } catch {
      this.#failed = true;
    }
  }
}
