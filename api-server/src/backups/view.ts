import type { Backup } from "@slipway/crds";

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
