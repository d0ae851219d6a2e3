import type { LogEvent, LogSource } from "@slipway/analytics";
import type { OpenBatch } from "./open-batch.ts";

/** Characters of a file's identity that are kept. */
export const FILE = 16;

export const NOTHING_OMITTED = { omittedLines: 0, omittedBytes: 0, lostFiles: 0 } as const;

/**
 * Records of what a batch lacks of one log, one for each minute, so that each is in the windows in which the lines were. They are
 * written together with the position behind those lines.
 */
export class Omissions {
  #batch = -1;
  #byMinute = new Map<number, LogEvent>();

  /** The record of a minute; it may be changed until other lines are taken. @param at nanoseconds since the epoch, as digits */
  of(source: LogSource, at: string, days: number, batch: OpenBatch<LogEvent>): LogEvent {
    if (batch.number !== this.#batch) {
      this.#batch = batch.number;
      this.#byMinute = new Map();
    }
    const minute = Math.floor(Number(at.slice(0, -9)) / 60);
    const known = this.#byMinute.get(minute);
    if (known) {
      return known;
    }
    const event: LogEvent = {
      ...source,
      at,
      stream: "stdout",
      level: null,
      text: "",
      continues: false,
      file: "0".repeat(FILE),
      offset: 0,
      ...NOTHING_OMITTED,
      days,
    };
    this.#byMinute.set(minute, event);
    batch.add(event);
    return event;
  }
}
