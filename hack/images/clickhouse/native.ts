import { createRequire } from "node:module";

/** One connection to the engine, with settings, a current database and temporary tables of its own. */
export type Connection = { readonly connection: unique symbol };
/** A statement whose answer comes in pieces. */
type Cursor = { readonly cursor: unique symbol };

export interface Result {
  bytes: Uint8Array;
  /** Seconds. */
  elapsed: number;
  rowsRead: number;
  bytesRead: number;
  rowsWritten?: number;
  bytesWritten?: number;
}

/**
 * The functions used here of chDB's library, which the npm package `chdb` 3.4.0 is a shell around: the package's own
 * sessions take data of a few formats only. Its two rules hold here, too: a connection is used for one statement at a
 * time, and closed when none runs on it, else the engine aborts for the whole process.
 */
export interface Native {
  CreateConnection(path: string, args?: string[]): Connection;
  CloseConnection(connection: Connection): void;
  QueryAsyncConnection(connection: Connection, sql: string, format: string): Promise<Result>;
  InsertRawAsyncConnection(
    connection: Connection,
    statement: string,
    data: Uint8Array,
    countLines: boolean,
  ): Promise<{ rowsWritten: number; bytesWritten: number; elapsed: number }>;
  StreamQuery(connection: Connection, sql: string, format: string): Cursor;
  StreamFetch(cursor: Cursor): Promise<{ done: boolean; bytes: Uint8Array; numRows: number }>;
  StreamCancel(cursor: Cursor): void;
}

/** Loads the library; it takes 300 ms. */
export function loadNative(): Native {
  return createRequire(import.meta.url)(`@chdb/lib-linux-${process.arch}-gnu`) as Native;
}
