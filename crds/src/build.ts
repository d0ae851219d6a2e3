import { z } from "zod";
import { conditions } from "./conditions.ts";
import { commitSha, imageStatus, objectName, observedGeneration, text, timestamp } from "./fields.ts";
import type { Resource } from "./metadata.ts";
import { build as buildSettings, github, source } from "./project/source-parts.ts";
import { immutable, rule, withRules } from "./rule.ts";

/** States of a build. */
export const buildPhases = ["pending", "building", "success", "failed", "superseded"] as const;
export type BuildPhase = (typeof buildPhases)[number];

const fields = z
  .strictObject({
    projectRef: z
      .strictObject({ name: objectName("Id of the project.") })
      .describe("The project that is built."),
    triggeredBy: z
      .enum(["manual", "creation", "push", "tag", "release", "settings"])
      .describe("What asked for the build."),
    requestedAt: timestamp(
      "When it was requested, to the millisecond: of two builds one is the newer. It counts when it is within two seconds of the creation.",
    ).optional(),
    branch: text(1, 255, "Branch that is built.").optional(),
    tag: text(1, 255, "Tag that is built, of a publication by tag or release.").optional(),
    commitSha: commitSha.optional(),
    sourceRevision: z
      .int()
      .min(0)
      .meta({ description: "Revision of the source that was current.", format: "int64" })
      .optional(),
    source: source.optional(),
    build: buildSettings.optional(),
    github: github.optional(),
  })
  .describe(
    "One build: a copy of the source and settings as they were when it was asked for. It cannot be changed.",
  );
export type BuildSpec = z.output<typeof fields>;

export const buildSpec = withRules(
  fields,
  [
    rule<BuildSpec>({
      cel: "has(self.source) != has(self.github)",
      check: (self) => (self.source !== undefined) !== (self.github !== undefined),
      message: "exactly one of {source} and {github} is required",
      fields: ["source", "github"],
    }),
    rule<BuildSpec>({
      cel: "has(self.branch) || has(self.tag)",
      check: (self) => self.branch !== undefined || self.tag !== undefined,
      message: "{branch} or {tag} is required",
      fields: ["branch", "tag"],
    }),
  ],
  [immutable("a build")],
);

export const buildStatus = z
  .strictObject({
    observedGeneration: observedGeneration("Generation that this is about."),
    phase: z.enum(buildPhases).describe("State of the build.").optional(),
    conditions: conditions.optional(),
    step: z
      .enum(["fetch", "plan", "build", "push", "publish"])
      .describe("Step that runs, or the one that failed.")
      .optional(),
    commitSha: commitSha.optional(),
    commitMessage: text(0, 256, "First line of the commit's message.").optional(),
    image: imageStatus.optional(),
    podName: text(1, 253, "Pod that builds.").optional(),
    startedAt: timestamp("When the build began.").optional(),
    finishedAt: timestamp("When it ended.").optional(),
    errorCode: text(1, 64, "Machine-readable reason of a failure.").optional(),
    errorMessage: text(0, 1024, "Reason of a failure for people; it never holds a secret.").optional(),
  })
  .describe("What became of the build.");
export type BuildStatus = z.output<typeof buildStatus>;

/** One build of a Git project. */
export type Build = Resource<"Build", BuildSpec, BuildStatus>;
