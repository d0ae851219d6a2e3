import type { BackupPolicy, Project } from "@slipway/crds";
import type { BackupDefaults } from "./settings.ts";

/** What is in force for a database: its own word, else the platform's, as the operator has it. Pure. */
export function policyView({ spec }: Project, defaults: BackupDefaults) {
  const own: BackupPolicy = spec.database?.backup ?? {};
  const { enabled = true } = own;
  // A cache keeps nothing: whoever wants backups of one says so.
  const usual = spec.profile === "cache" ? undefined : defaults;
  return {
    enabled,
    schedule: (enabled && (own.schedule ?? usual?.schedule)) || null,
    verify_schedule: (enabled && (own.verifySchedule ?? usual?.verifySchedule)) || null,
    retention_days: own.retentionDays ?? defaults.retentionDays,
    timezone: "UTC" as const,
  };
}
