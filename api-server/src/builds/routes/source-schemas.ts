import { z } from "zod";
import { capabilities } from "../../git/routes/schemas.ts";
import { success } from "../../projects/routes/schemas.ts";

/** Schemas of what is answered about a project's source, for the OpenAPI document and the tests. */

export const versionDeploySchema = z.object({
  enabled: z.boolean(),
  event: z.enum(["tag", "release"]),
  tag_pattern: z.string(),
  include_prereleases: z.boolean(),
});

export const projectionSchema = z.object({
  source: z
    .object({
      connection_id: z.string(),
      repository_id: z.string(),
      branch: z.string(),
      auto_deploy: z.boolean(),
      version_deploy: versionDeploySchema,
      provider_id: z.string().nullable().describe("Null when the connection is gone."),
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
