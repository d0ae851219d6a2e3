/** Where backups are kept, as the operator sees it. */

import type { OwnerReference } from "@slipway/controller-runtime";
import type { Backup, BackupBucket } from "@slipway/crds";
import type { Result } from "./agent/protocol.ts";
import type { JobPlace } from "./job.ts";

/** A Job that is about to be made. */
export interface JobRef {
  name: string;
  namespace: string;
  owner: OwnerReference;
}

export interface BackupStore {
  /** Where a backup that is begun now is to be: for people, and so that it is found whatever the settings say later. */
  place(backup: Backup): { location: string; bucket?: BackupBucket };
  /** Whether the stored backup exists; undefined where that is unknown, as while its organization is being removed. */
  has(backup: Backup, signal: AbortSignal): Promise<boolean | undefined>;
  /**
   * Makes ready for a Job that writes. Called again before the Job exists, it continues with what it has done.
   * @param sizeGb what the database may hold at most
   */
  openWrite(job: JobRef, backup: Backup, sizeGb: number, signal: AbortSignal): Promise<JobPlace>;
  /** Makes ready for a Job that reads. */
  openRead(job: JobRef, backup: Backup, signal: AbortSignal): Promise<JobPlace>;
  /**
   * Makes what a Job has written the backup. It may be called again after it has succeeded.
   * @throws RetryableError when the store does not answer
   * @returns why what was written is not what the agent says, for people; undefined when it is
   */
  commit(
    job: JobRef,
    backup: Backup,
    result: Extract<Result, { ok: true }>,
    signal: AbortSignal,
  ): Promise<string | undefined>;
  /**
   * Removes all that is kept of a backup.
   * @returns what is waited for, for people; undefined when nothing is left
   */
  erase(backup: Backup, signal: AbortSignal): Promise<string | undefined>;
}
