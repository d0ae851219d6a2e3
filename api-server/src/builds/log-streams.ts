import { setTimeout as sleep } from "node:timers/promises";
import type { Build, BuildLogChunk } from "@slipway/ledger";
import { type EventSource, eventText } from "../http/event-streams.ts";
import { chunkView, isFinished } from "./view.ts";

/** A build's log as it is written, as events. */

/** What a stream is fed from. */
export interface LogFeed {
  /** The current build; undefined when it is deleted. */
  build(): Promise<Pick<Build, "status" | "log_truncated"> | undefined>;
  lines(cursor: number): Promise<BuildLogChunk[]>;
}

/** How often a build is read. */
const POLL_INTERVAL_MS = 500;

/**
 * Events `log` with a line each and its sequence as id, and `end` with the status once the build has ended and all was sent. A
 * stream that ends without `end` is to be resumed.
 */
export const buildLogEvents = (feed: LogFeed, from: number, pollIntervalMs = POLL_INTERVAL_MS): EventSource =>
  async function* events(signal) {
    let cursor = from;
    yield ": log\n\n";
    try {
      while (!signal.aborted) {
        // Before the lines: of a build that has ended all of them are in the ledger.
        const build = await feed.build();
        if (build === undefined) {
          return;
        }
        const lines = await feed.lines(cursor);
        for (const line of lines) {
          yield eventText("log", chunkView(line), line.sequence);
          cursor = line.sequence;
        }
        if (lines.length > 0) {
          continue;
        }
        if (isFinished(build.status)) {
          const { status, log_truncated: truncated } = build;
          yield eventText("end", { status, next_cursor: cursor, truncated });
          return;
        }
        await sleep(pollIntervalMs, undefined, { signal });
      }
    } catch {
      // The client has disconnected, or the ledger is unavailable: without `end` the client resumes after the last id.
    }
  };
