/** One place that keeps archives. */
export interface ArchiveStorage {
  /** For people: `s3://bucket/prefix/`, or the folder. */
  readonly place: string;
  /** Files and objects of the place itself, whatever their names. */
  list(): Promise<StoredFile[]>;
  /**
   * Writes a new one, which has its name once all of it is stored. No more than a part of it is in memory.
   * @returns bytes
   * @throws Error with code `EEXIST` when the name is taken; what `bytes` throws
   */
  write(name: string, bytes: AsyncIterable<Uint8Array>): Promise<number>;
  /** @throws Error when it does not exist */
  read(name: string): AsyncIterable<Uint8Array>;
  delete(name: string): Promise<void>;
  /** Removes what writers that were killed have left of archives, where that costs. */
  removeUnfinished(): Promise<void>;
}

export interface StoredFile {
  name: string;
  /** Bytes. */
  size: number;
}
