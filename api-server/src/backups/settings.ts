import { parse } from "yaml";
import { z } from "zod";

// Where backups are kept concerns the operator alone.
const settings = z.object({
  schedule: z.string().optional(),
  verifySchedule: z.string().optional(),
  retentionDays: z.int().min(1).default(7),
});
/** What a database has that says nothing of its backups. */
export type BackupDefaults = z.output<typeof settings>;

/** Reads the file that `SLIPWAY_BACKUPS_FILE` names. @throws Error that lists what is wrong */
export function parseBackupDefaults(text: string): BackupDefaults {
  const result = settings.safeParse(parse(text) ?? {});
  if (!result.success) {
    throw new Error(`no valid settings of backups:\n${z.prettifyError(result.error)}`);
  }
  return result.data;
}
