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
