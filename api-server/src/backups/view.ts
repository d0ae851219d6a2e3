import { type Backup, type BackupPolicy, backupEngines, type Project, type ProjectType } from "@slipway/crds";
import { parse } from "yaml";
import { z } from "zod";

/** Backups and backup policies as `/v1` shows them, with their schemas. Pure. */

/** A backup as `/v1` shows it. Pure. */
export function backupView({ metadata, spec, status = {} }: Backup) {
  const { phase = "pending", contents } = status;
  return {
    id: metadata.name,
    project_id: spec.projectRef.name,
    status: metadata.deletionTimestamp === undefined ? phase : ("deleting" as const),
    trigger: spec.trigger,
    requested_at: spec.requestedAt,
    expires_at: spec.expiresAt ?? null,
    ...(status.engine === undefined ? {} : { engine: status.engine }),
    ...(status.version === undefined ? {} : { version: status.version }),
    started_at: status.startedAt ?? null,
    finished_at: status.finishedAt ?? null,
    size_bytes: status.sizeBytes ?? null,
    sha256: status.sha256 ?? null,
    contents: contents
      ? { tables: contents.tables ?? null, rows: contents.rows ?? null, keys: contents.keys ?? null }
      : null,
    last_verified_at: status.lastVerifiedAt ?? null,
    verification: verificationOf({ spec, status }),
    ...(status.message ? { message: status.message } : {}),
  };
}

/** How the newest restore test went; null when there was none. */
function verificationOf({ spec, status = {} }: Pick<Backup, "spec" | "status">) {
  const { verifyRequestedAt } = spec;
  if (verifyRequestedAt === undefined) {
    return null;
  }
  const verified = status.conditions?.find(({ type }) => type === "Verified");
  if (status.verifyFinishedFor !== verifyRequestedAt || !verified) {
    return { status: "running" as const, requested_at: verifyRequestedAt };
  }
  const outcome = verified.status === "True" ? ("succeeded" as const) : ("failed" as const);
  return {
    status: outcome,
    requested_at: verifyRequestedAt,
    ...(verified.message ? { message: verified.message } : {}),
  };
}

/** Whether a backup is still running. */
export const isActive = ({ metadata, status }: Backup): boolean =>
  metadata.deletionTimestamp === undefined && status?.phase !== "succeeded" && status?.phase !== "failed";

/** Whether it can be restored, and tried. */
export const isComplete = ({ metadata, status }: Backup): boolean =>
  metadata.deletionTimestamp === undefined && status?.phase === "succeeded";

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

const moment = (about: string) => z.string().describe(about);

/** A backup, as every answer about it has it. */
export const backupSchema = z.object({
  id: z.string(),
  project_id: z.string(),
  status: z.enum(["pending", "running", "succeeded", "failed", "deleting"]),
  trigger: z.enum(["schedule", "manual"]),
  requested_at: moment("When it was asked for, or the minute that it was scheduled for."),
  expires_at: moment("When it is deleted; null: never.").nullable(),
  engine: z.enum(backupEngines).optional(),
  version: z.string().optional(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  size_bytes: z.number().nullable().describe("Bytes that are stored."),
  sha256: z.string().nullable(),
  contents: z
    .object({ tables: z.number().nullable(), rows: z.number().nullable(), keys: z.number().nullable() })
    .nullable()
    .describe("What is in it, counted when it was made."),
  last_verified_at: moment("When it was last loaded into a server, and all was there.").nullable(),
  verification: z
    .object({
      status: z.enum(["running", "succeeded", "failed"]),
      requested_at: z.string(),
      message: z.string().optional(),
    })
    .nullable()
    .describe("The newest restore test."),
  message: z.string().describe("Why it failed, or what it waits for.").optional(),
});

export const policySchema = z.object({
  enabled: z.boolean(),
  schedule: z.string().nullable().describe("Null: none are made by themselves."),
  verify_schedule: z
    .string()
    .nullable()
    .describe("When the newest backup is tried. Null: when somebody asks."),
  retention_days: z.int(),
  timezone: z.literal("UTC"),
});
