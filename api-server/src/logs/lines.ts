import { nanoseconds, STAMP, timestamp } from "@slipway/analytics";
import { eventText } from "../http/event-streams.ts";

/** Log lines as nodes return them, and how those of several instances become one log. Pure. */

/** One line of an application, without the time that the node wrote before it. */
export interface LogLine {
  /** Nanoseconds since 1970. */
  time: bigint;
  text: string;
}

/** Bytes of one line; of a longer one the beginning is shown. */
export const MAX_LINE_BYTES = 16 * 1024;
const CUT = " …";

const NEWLINE = 0x0a;
/** Bytes of the time and the space after it. */
const STAMP_BYTES = 40;

/** Bytes that are no UTF-8 become U+FFFD: an application may write anything. */
const utf8 = new TextDecoder("utf-8");

/**
 * Parses a node's answer. A line without a time is not the application's: nodes report what they could not read
 * in the same answer. Times never go back, so that lines stay in the order in which they were written although a
 * node's clock was set.
 * @param longest bytes of a line from which on its beginning alone is kept
 */
export function parseLog(bytes: Buffer, longest = MAX_LINE_BYTES): LogLine[] {
  const lines: LogLine[] = [];
  let latest = 0n;
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline;
    const line = bytes.subarray(start, end);
    start = end + 1;
    const stamp = STAMP.exec(line.toString("latin1", 0, STAMP_BYTES));
    if (!stamp) {
      continue;
    }
    const time = nanoseconds(stamp);
    if (time > latest) {
      latest = time;
    }
    lines.push({ time: latest, text: textOf(line.subarray(stamp[0].length), longest) });
  }
  return lines;
}

function textOf(line: Buffer, longest: number): string {
  if (line.length <= longest) {
    return utf8.decode(line);
  }
  let end = longest;
  // Not in the middle of a character, which takes at most four bytes.
  while (end > longest - 3 && ((line[end] ?? 0) & 0xc0) === 0x80) {
    end -= 1;
  }
  return utf8.decode(line.subarray(0, end)) + CUT;
}

/** The newest lines of all instances, oldest first, within both limits. `maxBytes` counts UTF-8 and a newline each. */
export function newestLines<Line extends LogLine>(
  instances: readonly (readonly Line[])[],
  limits: { maxLines: number; maxBytes: number },
): Line[] {
  const merged = instances.flat().sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  let first = merged.length;
  for (let bytes = 0; first > 0 && merged.length - first < limits.maxLines; first -= 1) {
    bytes += Buffer.byteLength(merged[first - 1]?.text ?? "") + 1;
    if (bytes > limits.maxBytes) {
      break;
    }
  }
  return merged.slice(first);
}

/** Bytes of a line's beginning that are kept while its end is waited for; what is shown of it is less. */
const MAX_KEPT_BYTES = 32 * 1024;

/** Cuts a followed log into pieces of whole lines. An unterminated last line comes at the end of the log. */
export async function* wholeLines(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let kept: Buffer = Buffer.alloc(0);
  for await (const chunk of body) {
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      yield Buffer.concat([kept, chunk.subarray(0, end)]);
      kept = Buffer.alloc(0);
    }
    const rest = chunk.subarray(end, end + MAX_KEPT_BYTES - kept.length);
    if (rest.length > 0) {
      kept = Buffer.concat([kept, rest]);
    }
  }
  if (kept.length > 0) {
    yield kept;
  }
}

/** A line of one of several instances. */
export interface NamedLine extends LogLine {
  instance: string;
}

/** As an event; the id is the newest time of all that were sent, so that going on after it repeats nothing. */
export const lineEvent = ({ time, text, instance }: NamedLine, id: bigint): string =>
  eventText("log", { instance, timestamp: timestamp(time), message: text }, id);

/** How far the log of an instance was read: nodes find lines by the second alone, so that some are returned again. */
export interface Position {
  /** Of the last line, in nanoseconds since 1970. */
  time: bigint;
  /** How many lines of this very time were read. */
  lines: number;
}

/** The position after the lines, which were read from a position on. */
export function positionAfter(lines: readonly LogLine[], before?: Position): Position | undefined {
  let position = before;
  for (const { time } of lines) {
    if (position === undefined || time > position.time) {
      position = { time, lines: 1 };
    } else if (time === position.time) {
      position = { time, lines: position.lines + 1 };
    }
  }
  return position;
}

/** Removes from a log that is read again, piece by piece, what was read before. */
export function skipUntil(position: Position | undefined): (lines: LogLine[]) => LogLine[] {
  let isBehind = position === undefined;
  let ofThisTime = 0;
  const isNew = ({ time }: LogLine): boolean => {
    if (isBehind || position === undefined) {
      return true;
    }
    if (time === position.time) {
      ofThisTime += 1;
    }
    isBehind = time > position.time || (time === position.time && ofThisTime > position.lines);
    return isBehind;
  };
  return (lines) => lines.filter(isNew);
}

/** The second of the position, as nodes accept it. */
export const sinceTime = ({ time }: Position): string =>
  new Date(Number(time / 1_000_000_000n) * 1_000).toISOString().replace(".000Z", "Z");
