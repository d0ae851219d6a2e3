/** When a database is backed up, and for how long backups are kept: its own word, else the platform's. Pure. */

import { createHash } from "node:crypto";
import { isDatabaseType, type Project } from "@slipway/crds";
import { scriptsOf } from "./engines/index.ts";
import type { BackupSettings } from "./settings.ts";

/** Cron of five fields, in UTC, and how long after each occurrence its turn is, in milliseconds. */
export interface Schedule {
  cron: string;
  delayMs: number;
}

export interface Policy {
  /** Undefined where none are made by themselves. */
  schedule?: Schedule;
  verifySchedule?: Schedule;
  retentionDays: number;
}

/** The policy in force; undefined for what cannot be backed up. */
export function policyOf(
  { metadata, spec }: Project,
  settings: BackupSettings | undefined,
): Policy | undefined {
  if (!settings || !isDatabaseType(spec.type) || !scriptsOf(spec.type)) {
    return undefined;
  }
  const { enabled = true, schedule, verifySchedule, retentionDays } = spec.database?.backup ?? {};
  // A cache has no data to keep: backups of one have to be requested.
  const usual = spec.profile === "cache" ? undefined : settings;
  const delayMs = queuePosition(metadata.uid ?? metadata.name, settings.spreadMinutes);
  return {
    schedule: enabled ? scheduleOf(schedule, usual?.schedule, delayMs) : undefined,
    verifySchedule: enabled ? scheduleOf(verifySchedule, usual?.verifySchedule, delayMs) : undefined,
    retentionDays: retentionDays ?? settings.retentionDays,
  };
}

/** A database's own schedule is kept to the minute; the one that all have is spread. */
function scheduleOf(
  own: string | undefined,
  usual: string | undefined,
  delayMs: number,
): Schedule | undefined {
  if (own !== undefined) {
    return { cron: own, delayMs: 0 };
  }
  return usual === undefined ? undefined : { cron: usual, delayMs };
}

/** Where in the minutes a database's turn is: always the same, and different for most. */
function queuePosition(uid: string, spreadMinutes: number): number {
  const drawn = createHash("sha256").update(uid).digest().readUInt32BE(0);
  return Math.floor((drawn / 2 ** 32) * spreadMinutes * 60_000);
}
