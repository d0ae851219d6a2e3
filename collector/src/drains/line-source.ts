import type { DrainedLine, DrainPosition } from "@slipway/analytics";

/** Lines of one organization in the order in which the store got them. */
export interface LineSource {
  page(
    after: DrainPosition,
    to: number,
    most: { lines: number; bytes: number },
    signal: AbortSignal,
  ): Promise<DrainedLine[]>;
  /** When the next line was stored; undefined when there is none until `to`. */
  next(after: DrainPosition, to: number): Promise<number | undefined>;
  /** How many lines are between. */
  count(after: DrainPosition, to: number): Promise<number>;
}

/** Behind which line a reader is that has this one. */
export const behind = (line: DrainedLine): DrainPosition => [
  line.storedAt,
  line.project,
  line.at,
  line.instance,
  line.container,
  line.file,
  line.offset,
];
