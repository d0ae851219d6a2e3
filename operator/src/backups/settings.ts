/** What of the platform matters to backups. */

import { fields } from "@slipway/crds";
import { parse } from "yaml";
import { z } from "zod";

const quantity = z.string().regex(/^[1-9][0-9]*(Mi|Gi|Ti)$/, "must be a size such as 20Gi");

const port = z.int().min(1).max(65_535);

const volume = z.strictObject({
  size: quantity.default("20Gi").describe("Of the volume of each organization."),
  storageClass: z.string().max(253).default("").describe("The cluster's default when empty."),
  accessMode: z.enum(["ReadWriteOnce", "ReadWriteMany"]).default("ReadWriteOnce"),
});

const s3 = z.strictObject({
  endpoint: z.url({ protocol: /^https?$/ }).describe("Where pods and the operator reach the store."),
  bucket: z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, "must be the name of a bucket"),
  region: z.string().min(1).max(64).default("us-east-1"),
  prefix: z
    .string()
    .max(256)
    .regex(/^([A-Za-z0-9._-]+\/)*$/, "must end in a slash, or be empty")
    .default(""),
  forcePathStyle: z.boolean().default(true),
  ca: z
    .string()
    .max(65_536)
    .default("")
    .describe("Authorities of the store's certificate as PEM, beside those that all believe."),
  networkPolicy: z
    .strictObject({
      cidrs: z.array(z.string()).default([]).describe("Denied to tenants, but not to pods of backups."),
      port: port.default(443),
      earlier: z
        .array(z.strictObject({ cidrs: z.array(z.string()).min(1), port: port.default(443) }))
        .default([])
        .describe("The same of stores that hold earlier backups."),
    })
    .prefault({}),
});

const settings = z
  .strictObject({
    image: z.string().min(1).max(512).describe("Image of the platform, for the container that stores."),
    store: z.enum(["volume", "s3"]).default("volume"),
    volume: volume.prefault({}),
    s3: s3.optional(),
    schedule: fields.cron.optional().describe("When databases that say nothing of it are backed up, in UTC."),
    verifySchedule: fields.cron.optional().describe("When their newest backup is tried, in UTC."),
    spreadMinutes: z
      .int()
      .min(0)
      .max(720)
      .default(60)
      .describe("Over which these two are spread, so that databases do not all begin at once."),
    retentionDays: z.int().min(1).max(3650).default(7),
    keepAtLeast: z
      .int()
      .min(0)
      .max(100)
      .default(1)
      .describe("Backups that are kept for as long as their project is there, though they have expired."),
    deadlineSeconds: z
      .int()
      .min(60)
      .max(86_400)
      .default(21_600)
      .describe("In which a backup, a restore or a test must be done."),
  })
  .refine((value) => value.store !== "s3" || value.s3 !== undefined, {
    path: ["s3"],
    message: "is required for the store s3",
  });
/** Settings of backups; without them there are none. */
export type BackupSettings = z.output<typeof settings>;

/** Reads the file that `SLIPWAY_BACKUPS_FILE` names. @throws Error that lists what is wrong */
export function parseBackupSettings(text: string): BackupSettings {
  const result = settings.safeParse(parse(text) ?? {});
  if (!result.success) {
    throw new Error(`no valid settings of backups:\n${z.prettifyError(result.error)}`);
  }
  return result.data;
}
