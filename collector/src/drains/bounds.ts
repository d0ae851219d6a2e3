/** What one drain may take of the store, of its receiver and of the process. */
export interface DrainBounds {
  /** Lines and bytes of text of one batch. */
  lines: number;
  bytes: number;
  /** Milliseconds of stored lines among which one page is found: what the store sorts for it. */
  windowMs: number;
  /** Batches, and milliseconds, after which others have a turn. A drain whose turn took longer is a slow one. */
  batches: number;
  turnMs: number;
  /** Milliseconds for one batch, and between attempts: first and longest. */
  timeoutMs: number;
  backoffMs: readonly [number, number];
  /** Milliseconds behind the store from which on lines are left out. */
  maxLagMs: number;
}

export const BOUNDS: DrainBounds = {
  lines: 1_000,
  bytes: 256 * 1024,
  windowMs: 60_000,
  batches: 4,
  turnMs: 5_000,
  timeoutMs: 20_000,
  backoffMs: [1_000, 60_000],
  maxLagMs: 7 * 86_400_000,
};
