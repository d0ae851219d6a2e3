import type { Readable } from "node:stream";

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
