import { createHash } from "node:crypto";

/**
 * What the operator and the two containers of a backup's pod exchange. One container has the engine's image and makes or
 * loads a dump; the other one, this agent, has the platform's and uploads it to the store, or downloads it. They
 * share a folder. Imports nothing but Node's own, so that the agent starts quickly.
 */

/** The shared folder. */
export const WORK = "/exchange";

export const workFiles = {
  /** A named pipe with the dump, made by the engine's container. */
  data: "data",
  /** Exit code of the engine's program, written when it has ended: without it, nothing has been done. */
  exit: "exit",
  /** What is in the dump, a line `name<TAB>number` for each table or database of keys. */
  contents: "contents",
} as const;

/** Variable with the agent's task, as JSON. It holds no secret. */
export const TASK_VARIABLE = "SLIPWAY_BACKUP_TASK";

/** Where a backup is kept. */
export type Place =
  | { kind: "file"; path: string }
  /** A JSON file with `Urls`: each of them allows its bearer to write or read this one backup for some hours. */
  | { kind: "urls"; file: string; partBytes: number };

export interface Urls {
  /** To write parts with, in order. */
  parts?: string[];
  /** To read the whole with. */
  get?: string;
  /** Authorities that the store's certificate may have beside the usual ones, as PEM. */
  ca?: string;
}

export type Task =
  /** Uploads what comes out of the pipe. */
  | { do: "store"; place: Place; counts: "rows" | "keys" }
  /** Downloads the backup into the pipe. */
  | { do: "fetch"; place: Place; sha256: string; counts: "rows" | "keys" }
  /** Removes what is kept, of every try. */
  | { do: "erase"; place: Extract<Place, { kind: "file" }> };

/** Numbers of what a dump holds; see `BackupContents`. */
export interface Contents {
  tables?: number;
  rows?: number;
  keys?: number;
  hash?: string;
}

/** How it ended: the container's termination message, as JSON. */
export type Result =
  | { ok: true; sizeBytes: number; sha256: string; parts?: number; etags?: string; contents?: Contents }
  | { ok: false; reason: "DumpFailed" | "LoadFailed" | "StoreFailed" | "DataDamaged"; message: string };

/** The ETags of all parts as one word: a termination message has no room for a thousand. Pure. */
export function etagsHash(etags: readonly string[]): string {
  return createHash("sha256")
    .update(etags.map((etag) => etag.replaceAll('"', "")).join("\n"))
    .digest("hex");
}

/** Reads a termination message; undefined when it is none of the agent's. Pure. */
export function parseResult(text: string | undefined): Result | undefined {
  if (!text) {
    return undefined;
  }
  try {
    const value = JSON.parse(text) as Partial<Result> | null;
    return typeof value?.ok === "boolean" ? (value as Result) : undefined;
  } catch {
    return undefined;
  }
}
