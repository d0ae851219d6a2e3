/** Removes what is stored of a backup that is being deleted, and reports one that was missing though it should have been stored. */

import type { Backup } from "@slipway/crds";
import type { Clock, Logger } from "@slipway/process";
import type { BackupMetrics } from "./metrics.ts";
import type { BackupContext } from "./runner.ts";
import type { BackupStore } from "./store.ts";

export interface EraseDependencies {
  clock: Clock;
  log: Logger;
  metrics: Pick<BackupMetrics, "missing">;
  store: (backup: Backup) => BackupStore;
}

const ERASING = "What is stored is being removed.";

/**
 * Called until it returns undefined; `status.eraseStartedAt` is written in between.
 * @returns what is waited for, for people
 */
export async function eraseStored(
  backup: Backup,
  { event, signal, status }: Pick<BackupContext, "event" | "signal" | "status">,
  { clock, log, metrics, store }: EraseDependencies,
): Promise<string | undefined> {
  // Once the status has the start of the removal, a missing file is no fault.
  if (status.eraseStartedAt !== undefined) {
    return store(backup).erase(backup, signal);
  }
  if (status.phase === "succeeded" && (await store(backup).has(backup, signal)) === false) {
    const { location } = status;
    event(
      "Warning",
      "DataMissing",
      `What was stored is not there any more (${location}): it was removed by others.`,
    );
    metrics.missing();
    log.error({ backup: backup.metadata.name, location }, "a good backup is not where it was stored");
  }
  status.eraseStartedAt = clock.now().toISOString();
  return ERASING;
}
