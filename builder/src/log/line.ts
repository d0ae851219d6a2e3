/** Lines of a build's log, as containers write them to stdout. */

import { z } from "zod";
import { steps } from "../task.ts";

/** Most of a message, in bytes of UTF-8; a longer line becomes several. */
export const MAX_MESSAGE_BYTES = 8 * 1024;
/** Most of a build's log over all of its steps, in bytes of messages. */
export const MAX_LOG_BYTES = 4 * 1024 * 1024;

export const logLine = z.object({
  /** From 1, per step, without gaps: reading again inserts nothing twice. */
  seq: z.int().min(1),
  at: z.iso.datetime(),
  level: z.enum(["info", "error"]),
  step: z.enum(steps),
  message: z.string(),
  /** The log was cut here: lines are missing. */
  truncated: z.literal(true).optional(),
  /** No line of the log, but its end: the step writes no more. */
  last: z.literal(true).optional(),
});
export type LogLine = z.output<typeof logLine>;

/** Reads a line of a container's stdout; undefined when it is none of the runner's. Pure. */
export function parseLogLine(text: string): LogLine | undefined {
  try {
    const result = logLine.safeParse(JSON.parse(text));
    return result.success ? result.data : undefined;
  } catch {
    return undefined;
  }
}
