/** Commits, tags and releases at a Git server that start builds, and which of them are new. */

import { createHash } from "node:crypto";
import { isAlreadyExists, type KubeClient } from "@slipway/controller-runtime";
import {
  type Build,
  type BuildRequest,
  buildObject,
  fieldManagers,
  type Project,
  sourceRevision,
} from "@slipway/crds";
import { type GitProvider, triggeredBy, triggerMode } from "@slipway/git";
import type { BuildTrigger } from "@slipway/ledger";
import type { Clock } from "@slipway/process";
import { buildResource } from "../resources.ts";

/** A commit, tag or release by which a project is published. */
export interface GitTrigger {
  trigger: "push" | "tag" | "release";
  /** Name of the branch or the tag. */
  ref: string;
  commitSha: string;
  /** Whether the project's settings request a build of it. */
  isWanted: boolean;
}

/** A source in either form. */
type Source = NonNullable<Project["spec"]["source"] | Project["spec"]["github"]>;
/** The methods of a provider that polls use. */
export type PolledProvider = Pick<GitProvider, "commit" | "tags" | "releases">;

/** Lists all that may start a build of a project, the newest first, as Git servers do. @throws GitError */
export async function listTriggers(
  source: Source,
  provider: PolledProvider,
  repository: string,
): Promise<GitTrigger[]> {
  const mode = triggerMode(source);
  if (mode === "manual") {
    return [];
  }
  if (mode === "push") {
    const { sha } = await provider.commit(repository, source.branch);
    return [{ trigger: "push", ref: source.branch, commitSha: sha, isWanted: true }];
  }
  const tags = await provider.tags(repository);
  if (mode === "tag") {
    return tags.map(({ name, commitSha }) => {
      const event = { kind: "tag", repository, tag: name, commitSha } as const;
      return { trigger: mode, ref: name, commitSha, isWanted: triggeredBy(event, source) !== undefined };
    });
  }
  const commits = new Map(tags.map(({ name, commitSha }) => [name, commitSha]));
  const releases = await provider.releases(repository);
  return releases.flatMap(({ tag, draft, prerelease }) => {
    const commitSha = commits.get(tag);
    // The tag is created with the publication.
    if (draft || commitSha === undefined) {
      return [];
    }
    const event = { kind: "release", repository, tag, draft, prerelease } as const;
    return [{ trigger: mode, ref: tag, commitSha, isWanted: triggeredBy(event, source) !== undefined }];
  });
}

/**
 * Marks in the ledger that all triggers that exist with these settings are recorded: any other one is new from then on. Changed
 * settings need a new baseline, as triggers of another mode were not recorded.
 */
export function baselineTrigger(project: Project, organizationId: string): BuildTrigger {
  const { metadata, spec } = project;
  const { source, github } = spec;
  const named = github
    ? [github.repositoryOwner, github.repositoryName]
    : [source?.connectionId, source?.repositoryId];
  const own = source ?? github;
  const since = [sourceRevision(project), ...named, own?.branch, own && triggerMode(own)];
  const ref = createHash("sha256").update(JSON.stringify(since)).digest("hex").slice(0, 32);
  return { organizationId, projectUid: metadata.uid ?? "", trigger: "beginning", ref, commitSha: "" };
}

export function ledgerTrigger(project: Project, organizationId: string, seen: GitTrigger): BuildTrigger {
  const { trigger, ref, commitSha } = seen;
  return { organizationId, projectUid: project.metadata.uid ?? "", trigger, ref, commitSha };
}

/** The build that a new trigger requests. */
export const buildRequestOf = ({ trigger, ref, commitSha }: GitTrigger): BuildRequest => ({
  triggeredBy: trigger,
  ...(trigger === "push" ? { branch: ref } : { tag: ref }),
  commitSha,
});

/**
 * Whether a commit that exists at the baseline is newer than the one that was requested with the same settings, and so needs
 * a build.
 * @param builds of the project
 */
export function isNewCommit(
  { trigger, ref, commitSha }: GitTrigger,
  project: Project,
  builds: readonly Build[],
): boolean {
  if (trigger !== "push") {
    return false;
  }
  const requested = builds.filter(
    ({ spec }) => spec.branch === ref && spec.sourceRevision === sourceRevision(project),
  );
  const commits = requested.map(({ spec, status }) => status?.commitSha ?? spec.commitSha);
  // A build without a commit fetches the newest one.
  return commits.length > 0 && !commits.includes(commitSha) && !commits.includes(undefined);
}

/** Identifies a trigger within a project. */
export const triggerKey = ({
  trigger,
  ref,
  commitSha,
}: Pick<BuildTrigger, "trigger" | "ref" | "commitSha">) => JSON.stringify([trigger, ref, commitSha]);

// Creates the Builds that the operator itself requests.

/** Creates a Build; its reconciler records it in the ledger. @returns false when it exists already */
export async function createBuild(
  { client, clock }: { client: KubeClient; clock: Clock },
  [project, id, request]: readonly [project: Project, id: string, request: BuildRequest],
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.create<Build>(buildResource, buildObject(project, id, request, clock.now()), {
      fieldManager: fieldManagers.build,
      signal,
    });
    return true;
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
    return false;
  }
}
