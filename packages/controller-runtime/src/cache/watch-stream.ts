import type { Clock, Timer } from "@slipway/process";
import type { KubernetesObject, StatusBody } from "../client/types.ts";

/** One line of a watch, understood. */
export type WatchEvent<T> =
  | { type: "upsert"; object: T }
  | { type: "delete"; object: T }
  | { type: "bookmark"; resourceVersion: string }
  | { type: "error"; status: StatusBody }
  /** Not JSON, of an unknown type, or without what every object has: something happened that we cannot know. */
  | { type: "unparsable"; why: string };

/** Understands one line of a watch. Never throws. */
export function parseWatchEvent<T extends KubernetesObject>(line: string): WatchEvent<T> {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch (error) {
    return { type: "unparsable", why: error instanceof Error ? error.message : "not JSON" };
  }
  if (!isRecord(event) || !isRecord(event.object)) {
    return { type: "unparsable", why: "no object" };
  }
  if (event.type === "ERROR") {
    return { type: "error", status: event.object as StatusBody };
  }
  const metadata = event.object.metadata;
  if (!isRecord(metadata) || typeof metadata.resourceVersion !== "string") {
    return { type: "unparsable", why: "no metadata.resourceVersion" };
  }
  if (event.type === "BOOKMARK") {
    return { type: "bookmark", resourceVersion: metadata.resourceVersion };
  }
  if (typeof metadata.name !== "string") {
    return { type: "unparsable", why: "no metadata.name" };
  }
  const object = event.object as unknown as T;
  if (event.type === "ADDED" || event.type === "MODIFIED") {
    return { type: "upsert", object };
  }
  if (event.type === "DELETED") {
    return { type: "delete", object };
  }
  return { type: "unparsable", why: `unknown type ${String(event.type)}` };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Splits a byte stream into lines. What follows the last newline when the stream ends is dropped: it is cut off. */
export async function* splitLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  // A large object comes in many chunks; they are joined once, when its newline comes.
  let pending: Uint8Array[] = [];
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      pending.push(chunk.subarray(start, end));
      const line = Buffer.concat(pending).toString("utf8");
      pending = [];
      start = end + 1;
      if (line.trim() !== "") {
        yield line;
      }
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
    }
  }
}

/** Aborts a stream on which nothing came for a while. */
export class Watchdog {
  barked = false;
  readonly #clock: Clock;
  readonly #idleMs: number;
  readonly #bark: () => void;
  #timer: Timer | undefined;

  constructor(clock: Clock, idleMs: number, bark: () => void) {
    this.#clock = clock;
    this.#idleMs = idleMs;
    this.#bark = () => {
      this.barked = true;
      bark();
    };
    this.feed();
  }

  feed(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimeout(this.#bark, this.#idleMs);
  }

  stop(): void {
    this.#timer?.cancel();
  }
}

export async function* fed(stream: AsyncIterable<Buffer>, watchdog: Watchdog): AsyncGenerator<Buffer> {
  for await (const chunk of stream) {
    watchdog.feed();
    yield chunk;
  }
}
