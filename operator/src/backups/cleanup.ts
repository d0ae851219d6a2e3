/** Removes what is left of a failed backup, so that failed attempts do not fill the store. */

import type { Backup } from "@slipway/crds";
import { jobNames } from "./names.ts";
import { NoBucket } from "./s3.ts";
import type { BackupStore } from "./store.ts";
import type { BackupWork } from "./work.ts";

export interface CleanupDependencies {
  store: (backup: Backup) => BackupStore;
  work: Pick<BackupWork, "end" | "revoke" | "stop">;
}

/**
 * Called until it returns undefined; then no pod writes any more, and nothing is stored.
 * @param hasEnded whether its Job has: it is kept, with its containers' messages
 * @returns what is waited for, for people
 */
export async function cleanUp(
  backup: Backup,
  hasEnded: boolean,
  { store, work }: CleanupDependencies,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { name, namespace = "" } = backup.metadata;
  const dump = { name: jobNames.dump(name), namespace };
  if (!hasEnded && !(await work.stop(dump, signal))) {
    return "Its pods are being stopped.";
  }
  const waiting = await store(backup)
    .erase(backup, signal)
    .catch((error: unknown) => {
      // The platform's operator has deleted the bucket, with all that was in it.
      if (!(error instanceof NoBucket)) {
        throw error;
      }
    });
  if (waiting) {
    return waiting;
  }
  await work.revoke(dump, signal);
  await work.end({ name: jobNames.erase(name), namespace }, signal);
  return undefined;
}
