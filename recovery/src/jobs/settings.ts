/** What the jobs are given by the chart. */

import { commaSeparated, dnsLabel } from "@slipway/process";
import { z } from "zod";

const place = z.string().regex(/^s3:\/\/[^/]+\/(.*\/)?$/, "must be s3://BUCKET/ or s3://BUCKET/PREFIX/");

export const backupVariables = z.object({
  SLIPWAY_NAMESPACE: dnsLabel,
  SLIPWAY_PLATFORM_BACKUP_PLACE: place,
  SLIPWAY_PLATFORM_BACKUP_RECIPIENTS: commaSeparated.pipe(z.array(z.string().startsWith("age1")).min(1)),
  SLIPWAY_PLATFORM_BACKUP_RETENTION_DAYS: z.coerce.number().int().min(1).max(3_650),
  SLIPWAY_PLATFORM_BACKUP_KEEP_AT_LEAST: z.coerce.number().int().min(1).max(1_000),
  /** Folder that both containers of the pod have. */
  SLIPWAY_RECOVERY_DIR: z.string().min(1),
});

export const verificationVariables = z.object({
  SLIPWAY_NAMESPACE: dnsLabel,
  SLIPWAY_PLATFORM_BACKUP_PLACE: place,
  SLIPWAY_PLATFORM_IDENTITY_FILE: z.string().min(1),
  SLIPWAY_PLATFORM_VERIFICATION_NAMESPACE: dnsLabel,
  SLIPWAY_RECOVERY_DIR: z.string().min(1),
});
