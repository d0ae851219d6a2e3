/** Times of the jobrun controller, in milliseconds. */
export interface JobRunSettings {
  /** A container that runs longer is stopped. */
  limitMs: number;
  /** An occurrence that could not be admitted for so long is missed. */
  windowMs: number;
  /** A container that has not started for so long after its run was admitted never does. */
  startDeadlineMs: number;
}

/** How often "last observed running" is written, with room to be at most 30 s old. */
export const HEARTBEAT_MS = 25_000;
/** A run stays for so long after its charge was read back. */
export const KEEP_CHARGED_MS = 5 * 60_000;
/** A run that was refused, or cancelled before it started, stays for so long. */
export const KEEP_REFUSED_MS = 60_000;
/** After a Job began to go, its controller may still make a pod for so long. */
export const JOB_DELETION_GRACE_MS = 5_000;
/** How soon it is looked again where no event is sure to come. */
export const POLL_INTERVAL_MS = 5_000;
/** By how much the clocks of a node, the API and the operator may differ without a word of theirs being doubted. */
export const MAX_CLOCK_SKEW_MS = 10_000;
/** A node that has come back may tell of containers that it has lost as running for so long. */
export const NODE_TRUST_DELAY_MS = 60_000;
