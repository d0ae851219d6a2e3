import type { BackupPolicy, Project, ProjectType } from "@slipway/crds";
import { parse } from "yaml";
import { z } from "zod";

/** The policy in force for a database: its own settings, else the platform's, as the operator applies them. Pure. */
export function policyView({ spec }: Project, defaults: BackupDefaults) {
  const own: BackupPolicy = spec.database?.backup ?? {};
  const { enabled = true } = own;
  // A cache is backed up only when its own policy says so.
  const usual = spec.profile === "cache" ? undefined : defaults;
  return {
    enabled,
    schedule: (enabled && (own.schedule ?? usual?.schedule)) || null,
    verify_schedule: (enabled && (own.verifySchedule ?? usual?.verifySchedule)) || null,
    retention_days: own.retentionDays ?? defaults.retentionDays,
    timezone: "UTC" as const,
  };
}

/** The types of project that can be backed up. */
export const backedUpTypes: readonly ProjectType[] = ["postgresql", "mariadb", "valkey"];

// Where backups are kept concerns the operator alone.
const settings = z.object({
  schedule: z.string().optional(),
  verifySchedule: z.string().optional(),
  retentionDays: z.int().min(1).default(7),
});
/** The policy of databases that have no settings of their own. */
export type BackupDefaults = z.output<typeof settings>;

/** Reads the file that `SLIPWAY_BACKUPS_FILE` names. @throws Error that lists what is wrong */
export function parseBackupDefaults(text: string): BackupDefaults {
  const result = settings.safeParse(parse(text) ?? {});
  if (!result.success) {
    throw new Error(`no valid settings of backups:\n${z.prettifyError(result.error)}`);
  }
  return result.data;
}
