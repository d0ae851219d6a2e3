import type { LogLine } from "./lines.ts";

/** How far the log of an instance was read: nodes find lines by the second alone, so that some come again. Pure. */
export interface Position {
  /** Of the last line, in nanoseconds since 1970. */
  time: bigint;
  /** How many lines of this very time were read. */
  lines: number;
}

/** Behind the lines, which were read from a position on. */
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

/** Takes out of a log that is read again, piece by piece, what was read before. */
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

/** The second in which it lies, as nodes take it. */
export const sinceTime = ({ time }: Position): string =>
  new Date(Number(time / 1_000_000_000n) * 1_000).toISOString().replace(".000Z", "Z");
