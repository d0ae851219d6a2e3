import type { Project } from "@slipway/crds";
import type { Build, BuildLogChunk } from "@slipway/ledger";
import { versionDeployView } from "./settings.ts";

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

/** What a project that is built from Git shows of that, beside its source. Pure. */
export function builtView({ spec, status }: Pick<Project, "spec" | "status">) {
  return { ...githubOf(spec), ...failureOf(status) };
}

function githubOf({ github }: Project["spec"]) {
  if (github === undefined) {
    return {};
  }
  const { repositoryOwner, repositoryName, branch, autoDeploy, versionDeploy, contextPath } = github;
  const { runtime, version, startCommand, preBuildCommand, buildCommand } = github;
  return {
    github: {
      repository_owner: repositoryOwner,
      repository_name: repositoryName,
      branch,
      auto_deploy: autoDeploy,
      version_deploy: versionDeployView(versionDeploy),
      runtime: runtime ?? null,
      version: version ?? null,
      start_command: startCommand ?? null,
      pre_build_command: preBuildCommand ?? null,
      build_command: buildCommand ?? null,
      context_path: contextPath ?? ".",
    },
  };
}

function failureOf(status: Project["status"]) {
  const failure = status?.buildFailure;
  if (failure === undefined) {
    return {};
  }
  const { buildId, code, message, at } = failure;
  return {
    build_failure: {
      build_id: buildId,
      ...(code === undefined ? {} : { error_code: code }),
      ...(message === undefined ? {} : { error_message: message }),
      ...(at === undefined ? {} : { failed_at: new Date(at).toISOString() }),
    },
  };
}
