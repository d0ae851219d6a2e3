import type { IncomingMessage } from "node:http";
import { pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { failure } from "./errors.ts";

const decoders = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
} as const;

/** A request's body, decompressed. @throws Failure for a compression that is not known */
export function decoded(request: IncomingMessage): Readable {
  const encoding = request.headers["content-encoding"]?.toLowerCase() ?? "identity";
  if (encoding === "identity") {
    return request;
  }
  if (!Object.hasOwn(decoders, encoding)) {
    throw failure("NOT_IMPLEMENTED", `Unknown content encoding '${encoding}' of the request.`);
  }
  // The reader gets the error.
  return pipeline(request, decoders[encoding as keyof typeof decoders](), () => {});
}

/** A stream that is looked at before it is read. */
export class Body {
  readonly #source: AsyncIterator<Buffer>;
  #seen: Buffer[] = [];
  #ended = false;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Its first bytes: this many at least, or all of it. */
  async start(bytes: number): Promise<{ bytes: Buffer; whole: boolean }> {
    let length = this.#seen.reduce((sum, chunk) => sum + chunk.length, 0);
    while (!this.#ended && length < bytes) {
      const next = await this.#source.next();
      if (next.done) {
        this.#ended = true;
      } else {
        this.#seen.push(next.value);
        length += next.value.length;
      }
    }
    this.#seen = [Buffer.concat(this.#seen)];
    return { bytes: this.#seen[0] ?? Buffer.alloc(0), whole: this.#ended };
  }

  /** All of it. @throws Failure when that is more than `limit` bytes */
  async all(limit: number): Promise<Buffer> {
    const { bytes, whole } = await this.start(limit + 1);
    if (!whole || bytes.length > limit) {
      throw tooLarge(limit);
    }
    return bytes;
  }

  /** What is left of it, without the first `skip` bytes of what was looked at. */
  async *rest(skip: number): AsyncGenerator<Buffer> {
    const seen = Buffer.concat(this.#seen).subarray(skip);
    this.#seen = [];
    if (seen.length > 0) {
      yield seen;
    }
    while (!this.#ended) {
      const next = await this.#source.next();
      if (next.done) {
        this.#ended = true;
      } else {
        yield next.value;
      }
    }
  }
}

export function tooLarge(limit: number): Error {
  return failure("QUERY_IS_TOO_LARGE", `More than ${limit} bytes cannot be taken at once in this format.`);
}
