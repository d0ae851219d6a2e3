import { createHash, randomInt } from "node:crypto";
import { z } from "zod";
import { conditions } from "./conditions.ts";
import { commitSha, imageStatus, objectName, observedGeneration, text, timestamp } from "./fields.ts";
import type { Resource } from "./metadata.ts";
import { API_VERSION, labels, MANAGED_BY, organizationOfNamespace } from "./names.ts";
import type { Project } from "./project/index.ts";
import { build as buildSettings, github, source } from "./project/source-parts.ts";
import { immutable, rule, withRules } from "./rule.ts";
import { sourceRevision } from "./source-revision.ts";

/** Condition types of a Build. */
export const buildConditions = {
  /** Positive: the image is built and pushed. Unknown while the build runs. */
  Succeeded: "Succeeded",
  /** Positive: the project serves the image. Unknown until it does, or is known not to. */
  Published: "Published",
  /** Positive, summary: all is well with the build, and it has ended. */
  Ready: "Ready",
} as const;
export type BuildCondition = keyof typeof buildConditions;

/** Reasons of a Build's conditions. */
export const buildReasons = {
  Pending: "Pending",
  // Ready, until it has ended
  Queued: "Queued",
  Waiting: "Waiting",
  ClearingAway: "ClearingAway",
  Building: "Building",
  KeepingLog: "KeepingLog",
  Publishing: "Publishing",
  // Ended, or Succeeded before it is published
  Pushed: "Pushed",
  Failed: "Failed",
  Superseded: "Superseded",
  Published: "Published",
  PublishFailed: "PublishFailed",
  PublishTimeout: "PublishTimeout",
} as const;
export type BuildReason = keyof typeof buildReasons;
/** What conditions of a Build may say. */
export interface BuildConditionCatalog {
  type: BuildCondition;
  reason: BuildReason;
}

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
    ranFrom: timestamp(
      "When the first container of its pod started, by the node: minutes from then on are charged. Absent where the attempt failed and is made again.",
    ).optional(),
    ranUntil: timestamp("When the container that failed ended, or the last one.").optional(),
    errorCode: text(1, 64, "Machine-readable reason of a failure.").optional(),
    errorMessage: text(0, 1024, "Reason of a failure for people; it never holds a secret.").optional(),
  })
  .describe("What became of the build.");
export type BuildStatus = z.output<typeof buildStatus>;

/** One build of a Git project. */
export type Build = Resource<"Build", BuildSpec, BuildStatus>;

// Build objects: their ids, and which organization may run the images that they make.

/** What is requested of a build; without a commit it uses the branch's newest one when it is fetched. */
export type BuildRequest = Pick<BuildSpec, "triggeredBy" | "branch" | "tag" | "commitSha">;

/** The object that requests a build, with a copy of the project's source as it is now. Pure. */
export function buildObject(project: Project, id: string, request: BuildRequest, now: Date): Build {
  const { namespace, name, uid = "" } = project.metadata;
  const { source, build, github } = project.spec;
  const { triggeredBy, commitSha, branch, tag } = request;
  return {
    apiVersion: API_VERSION,
    kind: "Build",
    metadata: {
      name: id,
      namespace,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organizationOfNamespace(namespace ?? "") ?? "",
        [labels.project]: name,
      },
      ownerReferences: [
        { apiVersion: API_VERSION, kind: "Project", name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: {
      projectRef: { name },
      triggeredBy,
      requestedAt: now.toISOString(),
      ...(branch === undefined ? {} : { branch }),
      ...(tag === undefined ? {} : { tag }),
      ...(commitSha === undefined ? {} : { commitSha }),
      sourceRevision: sourceRevision(project),
      ...(source === undefined ? {} : { source }),
      ...(source === undefined || build === undefined ? {} : { build }),
      ...(github === undefined ? {} : { github }),
    },
  };
}

const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH = 19;

/** The id of a build is the name of its object, in the ledger, too: generated, or chosen by a user of `kubectl`. */
export const BUILD_ID = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** `b` and 98 random bits, like the ids of projects. */
export const newBuildId = (): string =>
  `b${Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("")}`;

/** The id of a build that may be requested repeatedly or by several callers: the same for the same words. Pure. */
export function buildIdOf(...words: readonly string[]): string {
  let rest = BigInt(`0x${createHash("sha256").update(words.join(" ")).digest("hex")}`);
  let text = "b";
  for (let at = 0; at < LENGTH; at += 1) {
    text += LETTERS[Number(rest % BigInt(LETTERS.length))];
    rest /= BigInt(LETTERS.length);
  }
  return text;
}

/** The build that the creation of a project starts: derived from the project's id, so a repeated request starts no other. */
export const firstBuildId = (projectId: string): string => buildIdOf("first build of", projectId);

/**
 * Whether an image is in the platform's registry of builds and of another organization, so that this one may not run it. Pure.
 * @param image reference of an image
 * @param buildsRegistry `host` or `host:port`; undefined where nothing is built
 */
export function isForeignBuild(
  image: string,
  organizationId: string,
  buildsRegistry: string | undefined,
): boolean {
  const [host = "", ...path] = image.toLowerCase().split("/");
  if (buildsRegistry === undefined || withPort(host) !== withPort(buildsRegistry.toLowerCase())) {
    return false;
  }
  return path.length < 2 || path[0] !== organizationId;
}

/** Normalizes a registry's host, so that equal registries compare equal. */
const withPort = (host: string): string => host.replace(/\.(?=:|$)/, "").replace(/^([^:]+)$/, "$1:443");
