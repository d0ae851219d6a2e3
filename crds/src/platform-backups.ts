/** What jobs that back up the platform report of it, for the operator's metrics: a ConfigMap with a key for each outcome. No I/O. */

import { z } from "zod";

/** Of the ConfigMap, and of the CronJob and the service account that back up. The chart creates all of them. */
export const PLATFORM_BACKUP = "slipway-platform-backup";
/** Of the CronJob and the service account that restore the newest backup for a test. */
export const PLATFORM_VERIFICATION = "slipway-platform-verification";
/** What the job may do in an organization's namespace; the chart creates this ClusterRole. */
export const PLATFORM_BACKUP_ROLE = `${PLATFORM_BACKUP}-organization`;

const rows = z.record(z.string(), z.int().min(0));

/** Of one backup that was stored. */
export const storedPlatformBackup = z.object({
  /** `platform-<time>-<8 hex>.age`. */
  name: z.string(),
  at: z.iso.datetime(),
  /** Of the encrypted bytes, in hex. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.int().min(0),
  seconds: z.number().min(0),
  /** Objects by kind. */
  objects: rows,
});
/** Of one that was restored for a test. */
export const verifiedPlatformBackup = z.object({
  name: z.string(),
  at: z.iso.datetime(),
  seconds: z.number().min(0),
  objects: rows,
  /** Rows of the ledger by table. */
  ledgerRows: rows,
});
export const failedPlatformBackup = z.object({ at: z.iso.datetime(), message: z.string() });

export type StoredPlatformBackup = z.output<typeof storedPlatformBackup>;
export type VerifiedPlatformBackup = z.output<typeof verifiedPlatformBackup>;

/** Keys of the ConfigMap's data: each has the last one of its kind, as JSON. */
export const platformBackupKeys = {
  stored: "backup.json",
  notStored: "backup-failure.json",
  verified: "verification.json",
  notVerified: "verification-failure.json",
} as const;
