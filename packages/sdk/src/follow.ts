import type { Slipway } from "./client.ts";
import { SlipwayError } from "./error.ts";
import { readEvents, type ServerEvent } from "./events.ts";
import { isTransient } from "./retry.ts";
import { sleep } from "./sleep.ts";

/** Logs as they are written. A stream that ends before its event `end` is resumed after what was received. */

export interface FollowOptions {
  /** Ends the following. */
  readonly signal?: AbortSignal;
  /** How often a stream without any event is resumed before its failure is thrown; 5 unless given. */
  readonly resumptions?: number;
}

/** A line of an application. */
export interface LogLine {
  readonly instance: string;
  /** ISO 8601, in nanoseconds. */
  readonly timestamp: string;
  readonly message: string;
}

/** A line of a build. */
export interface BuildLine {
  readonly sequence: number;
  readonly timestamp: string;
  readonly level: string;
  readonly step: string;
  readonly message: string;
  readonly final: boolean;
}

/** Opens a stream after the event of an id. */
type Open = (
  headers: Record<string, string>,
  signal: AbortSignal | undefined,
) => Promise<ReadableStream | null>;

const RESUME_MS = 500;

/** The events of a stream up to its `end`, over as many connections as that takes. @throws SlipwayError, and what `fetch` throws */
async function* followEvents(open: Open, options: FollowOptions): AsyncGenerator<ServerEvent, void> {
  const { signal, resumptions = 5 } = options;
  let last: string | undefined;
  let failures = 0;
  for (;;) {
    let failure: unknown;
    try {
      const stream = await open(
        { accept: "text/event-stream", ...(last === undefined ? {} : { "last-event-id": last }) },
        signal,
      );
      for await (const event of readEvents(stream as ReadableStream<Uint8Array>)) {
        last = event.id ?? last;
        failures = 0;
        yield event;
        if (event.event === "end") {
          return;
        }
      }
    } catch (error) {
      if (signal?.aborted) {
        return;
      }
      if (error instanceof SlipwayError && !isTransient(error.status)) {
        throw error;
      }
      failure = error;
    }
    failures += 1;
    if (failures > resumptions) {
      throw failure ?? new Error("the server ends the stream of events each time before its end");
    }
    try {
      await sleep(RESUME_MS * failures, signal);
    } catch {
      return;
    }
  }
}

/** The newest lines of a project's instances, then new ones as they are written, until the project is deleted. */
export async function* followLogs(
  slipway: Slipway,
  id: string,
  { instance, ...options }: FollowOptions & { readonly instance?: string } = {},
): AsyncGenerator<LogLine, void> {
  const query = { follow: "true" as const, ...(instance === undefined ? {} : { instance }) };
  const events = followEvents(
    (headers, signal) =>
      slipway.GET("/v1/project/{id}/logs", {
        params: { path: { id }, query },
        headers,
        signal,
        parseAs: "stream",
      }),
    options,
  );
  for await (const { event, data } of events) {
    if (event === "log") {
      yield JSON.parse(data) as LogLine;
    }
  }
}

/** The lines of a build as they are written; returns its status once it has ended. */
export async function* followBuild(
  slipway: Slipway,
  id: string,
  buildId: string,
  options: FollowOptions = {},
): AsyncGenerator<BuildLine, string | undefined> {
  const path = { id, buildId };
  const events = followEvents(
    (headers, signal) =>
      slipway.GET("/v1/project/{id}/builds/{buildId}/logs", {
        params: { path },
        headers,
        signal,
        parseAs: "stream",
      }),
    options,
  );
  for await (const { event, data } of events) {
    if (event === "log") {
      yield JSON.parse(data) as BuildLine;
    } else if (event === "end") {
      return (JSON.parse(data) as { status: string }).status;
    }
  }
  return undefined;
}
