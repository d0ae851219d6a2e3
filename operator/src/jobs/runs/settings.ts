/** Times of the jobrun controller, in milliseconds. */
export interface JobRunSettings {
  /** A container that runs longer is stopped. */
  limitMs: number;
  /** An occurrence that could not be admitted within this time is missed. */
  windowMs: number;
  /** Within which a container must start after its run was admitted. */
  startDeadlineMs: number;
}

/** How often "last observed running" is written, with room to be at most 30 s old. */
export const HEARTBEAT_MS = 25_000;
/** How long a run is retained after its charge was read back. */
export const KEEP_CHARGED_MS = 5 * 60_000;
/** How long one of the newest one-off runs of a project is retained after its end, and how many: of one whose plan costs nothing, fewer. */
export const KEEP_ONE_OFF_MS = 24 * 3_600_000;
export const KEEP_ONE_OFF_RUNS = { project: 20, freeProject: 5 } as const;
/** How long a run is retained that was rejected, or cancelled before it started. */
export const KEEP_REFUSED_MS = 60_000;
/** How long the Job controller may still create a pod after the deletion of its Job began. */
export const JOB_DELETION_GRACE_MS = 5_000;
/** How soon a key is reconciled again where no event is certain. */
export const POLL_INTERVAL_MS = 5_000;
/** Up to which difference the clocks of a node, the API and the operator are trusted. */
export const MAX_CLOCK_SKEW_MS = 10_000;
/** How long a node that is ready again may report lost containers as running. */
export const NODE_TRUST_DELAY_MS = 60_000;
