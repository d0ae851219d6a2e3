import type { Build, BuildLogChunk } from "@slipway/ledger";

/** Builds and their logs as clients see them. Pure. */

/** Whether nothing more becomes of a build. */
export const isFinished = (status: Build["status"]): boolean =>
  status === "success" || status === "failed" || status === "superseded";

export function buildView(build: Build) {
  const { id, commit_sha, branch, tag, status, triggered_by, error_code, error_message } = build;
  const { started_at, finished_at, created_at, updated_at } = build;
  return {
    id,
    commit_sha,
    branch,
    ...(tag === null ? {} : { tag }),
    status,
    started_at: started_at?.toISOString() ?? null,
    finished_at: finished_at?.toISOString() ?? null,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    triggered_by,
    ...(error_code === null ? {} : { error_code }),
    ...(error_message === null ? {} : { error_message }),
    diagnosis_status: "not_requested" as const,
  };
}
export type BuildView = ReturnType<typeof buildView>;

export function chunkView({ sequence, at, level, step, message, final }: BuildLogChunk) {
  return { sequence, timestamp: at.toISOString(), level, step, message, final };
}

/**
 * One read of a log.
 * @param build as it was before the lines were read: of one that was finished then, all lines are in the ledger
 * @param cursor after which the lines were read
 */
export function logView(
  build: Pick<Build, "status" | "log_truncated">,
  chunks: readonly BuildLogChunk[],
  cursor: number,
) {
  return {
    logs: chunks.map(chunkView),
    next_cursor: chunks.at(-1)?.sequence ?? cursor,
    status: build.status,
    finished: isFinished(build.status),
    truncated: build.log_truncated,
  };
}
