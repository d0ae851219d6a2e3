import type { Project } from "@slipway/crds";
import type { Build, BuildLogChunk } from "@slipway/ledger";
import { z } from "zod";
import { capabilities } from "../git/view.ts";
import { wholeNumber } from "../http/validate.ts";
import { success } from "../projects/routes/schemas.ts";
import { versionDeployView } from "./settings.ts";

/** Builds and their logs as clients see them. Pure. */

/** Whether a build has ended. */
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

/** Schemas of what is sent and answered about builds, for the OpenAPI document and the tests. */

export const buildStatus = z.enum(["pending", "building", "success", "failed", "superseded"]);

export const buildSchema = z.object({
  id: z.string(),
  commit_sha: z.string().nullable(),
  branch: z.string().nullable().describe("Null of a tag's build."),
  tag: z.string().describe("Of a publication by tag or release.").optional(),
  status: buildStatus,
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  created_at: z.string(),
  updated_at: z.string(),
  triggered_by: z.string().describe("manual, creation, push, tag, release or settings."),
  error_code: z.string().describe("Of one that failed.").optional(),
  error_message: z.string().describe("For people; its text may change.").optional(),
  diagnosis_status: z.enum(["not_requested", "available", "unavailable"]),
  diagnosis_code: z.string().optional(),
});

export const buildPagination = z.object({
  total: z.int().min(0),
  page: z.int().min(1),
  limit: z.int().min(1),
});

export const logSchema = z.object({
  logs: z.array(
    z.object({
      sequence: z.int().min(0),
      timestamp: z.string(),
      level: z.string(),
      step: z.string(),
      message: z.string(),
      final: z.boolean(),
    }),
  ),
  next_cursor: z.int().min(0).describe("Pass it as `cursor` to go on: the last sequence that was returned."),
  status: buildStatus,
  finished: z.boolean(),
  truncated: z.boolean().describe("Whether the log was cut at its limit."),
});

export const listQuery = z.strictObject({
  page: wholeNumber(1, 2 ** 31 - 1).default(1),
  limit: wholeNumber(1, 50).default(10),
  branch: z.string().min(1).max(255).optional(),
  status: buildStatus.optional(),
});

export const logQuery = z.strictObject({
  cursor: z
    .string()
    .regex(/^[0-9]{1,16}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.int().min(0))
    .default(0),
  limit: wholeNumber(1, 500).default(200),
});

/** What starting a build answers. */
export const startedSchema = z.object({ build_id: z.string() });

const sha = (lengths: string, about: string) =>
  z
    .string()
    .regex(new RegExp(`^(?:${lengths})$`), `must be ${about}`)
    .toLowerCase()
    .describe(`Full id of a commit: ${about}.`)
    .optional();

const branch = z.string().min(1).max(255).describe("The configured branch unless given.").optional();
export const deployBody = z
  .strictObject({
    branch,
    commit_sha: sha("[0-9a-fA-F]{40}|[0-9a-fA-F]{64}", "40 or 64 hexadecimal characters"),
  })
  .nullish();
export const githubDeployBody = z
  .strictObject({ branch, commit_sha: sha("[0-9a-fA-F]{40}", "40 hexadecimal characters") })
  .nullish();

/** Schemas of what is answered about a project's source, for the OpenAPI document and the tests. */

export const versionDeploySchema = z.object({
  enabled: z.boolean(),
  event: z.enum(["tag", "release"]),
  tag_pattern: z.string(),
  include_prereleases: z.boolean(),
});

const projectionSchema = z.object({
  source: z
    .object({
      connection_id: z.string(),
      repository_id: z.string(),
      branch: z.string(),
      auto_deploy: z.boolean(),
      version_deploy: versionDeploySchema,
      provider_id: z.string().nullable().describe("Null when the connection was deleted."),
      repository_path: z.string().nullable().describe("Null while the Git server does not answer."),
    })
    .nullable()
    .describe("Null without a source, as the two below."),
  build: z
    .object({
      runtime: z.string().nullable().describe("Null: found out from the repository's files, as the version."),
      version: z.string().nullable(),
      start_command: z.string().nullable(),
      pre_build_command: z.string().nullable(),
      build_command: z.string().nullable(),
      dockerfile_path: z.string().nullable(),
      context_path: z.string(),
    })
    .nullable(),
  source_revision: z.int().min(0).describe("Counts the changes of source and build settings."),
  capabilities: capabilities.nullable(),
});

export const projectionAnswer = success({ data: projectionSchema });
