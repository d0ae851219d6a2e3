/** When a project's Git server is asked next. Pure. */

import { createHash } from "node:crypto";

/** Between two looks while all goes well; a hook tells sooner. */
export const POLL_MS = 60_000;
/** The longest pause after failures. */
export const LONGEST_MS = 1_800_000;

/** Where in the period a project has its place: always the same, and spread over all of it. @returns 0 to `period` */
export function offsetOf(uid: string, period: number): number {
  return createHash("sha256").update(uid).digest().readUInt32BE(0) % period;
}

/** @param failures looks in a row that have failed */
export function nextLook(uid: string, failures: number, now: number): number {
  if (failures > 0) {
    return now + Math.min(LONGEST_MS, POLL_MS * 2 ** Math.min(failures, 10));
  }
  const offset = offsetOf(uid, POLL_MS);
  return now - ((now - offset) % POLL_MS) + POLL_MS;
}
