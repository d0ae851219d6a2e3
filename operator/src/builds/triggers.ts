/** What a Git server has that starts builds, and what of it is new. Pure. */

import { createHash } from "node:crypto";
import { type Build, type BuildRequest, type Project, sourceRevision } from "@slipway/crds";
import { type GitProvider, triggeredBy, triggerMode } from "@slipway/git";
import type { BuildTrigger } from "@slipway/ledger";

/** Something at the Git server that a project is published by. */
export interface Seen {
  trigger: "push" | "tag" | "release";
  /** Name of the branch or the tag. */
  ref: string;
  commitSha: string;
  /** Whether the project's settings want a build of it. */
  wanted: boolean;
}

/** A source in either form. */
type Source = NonNullable<Project["spec"]["source"] | Project["spec"]["github"]>;
/** What is asked of a provider. */
export type PolledProvider = Pick<GitProvider, "commit" | "tags" | "releases">;

/** Asks for all that may start a build of a project. @throws GitError */
export async function look(source: Source, provider: PolledProvider, repository: string): Promise<Seen[]> {
  const mode = triggerMode(source);
  if (mode === "manual") {
    return [];
  }
  if (mode === "push") {
    const { sha } = await provider.commit(repository, source.branch);
    return [{ trigger: "push", ref: source.branch, commitSha: sha, wanted: true }];
  }
  const tags = await provider.tags(repository);
  if (mode === "tag") {
    return tags.map(({ name, commitSha }) => {
      const event = { kind: "tag", repository, tag: name, commitSha } as const;
      return { trigger: mode, ref: name, commitSha, wanted: triggeredBy(event, source) !== undefined };
    });
  }
  const commits = new Map(tags.map(({ name, commitSha }) => [name, commitSha]));
  const releases = await provider.releases(repository);
  return releases.flatMap(({ tag, draft, prerelease }) => {
    const commitSha = commits.get(tag);
    // Its tag comes with its publication, and it counts from then on.
    if (draft || commitSha === undefined) {
      return [];
    }
    const event = { kind: "release", repository, tag, draft, prerelease } as const;
    return [{ trigger: mode, ref: tag, commitSha, wanted: triggeredBy(event, source) !== undefined }];
  });
}

/**
 * Stands in the ledger once all that was there with these settings is noted: from then on what is not noted is new. Changed
 * settings begin anew, for what came while a project was published in another way was not noted.
 */
export function beginning(project: Project, organizationId: string): BuildTrigger {
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

export function triggerOf(project: Project, organizationId: string, seen: Seen): BuildTrigger {
  const { trigger, ref, commitSha } = seen;
  return { organizationId, projectUid: project.metadata.uid ?? "", trigger, ref, commitSha };
}

/** The build that something new asks for. */
export const askedBy = ({ trigger, ref, commitSha }: Seen): BuildRequest => ({
  triggeredBy: trigger,
  ...(trigger === "push" ? { branch: ref } : { tag: ref }),
  commitSha,
});

/**
 * Of what is there when a project begins to be published by pushes: a commit that came after the one that was asked for with
 * these settings is new all the same.
 * @param builds of the project
 */
export function isLater(
  { trigger, ref, commitSha }: Seen,
  project: Project,
  builds: readonly Build[],
): boolean {
  if (trigger !== "push") {
    return false;
  }
  const asked = builds.filter(
    ({ spec }) => spec.branch === ref && spec.sourceRevision === sourceRevision(project),
  );
  const commits = asked.map(({ spec, status }) => status?.commitSha ?? spec.commitSha);
  // One without a commit takes the newest when it is fetched.
  return commits.length > 0 && !commits.includes(commitSha) && !commits.includes(undefined);
}

/** Names something seen, within a project. */
export const keyOfSeen = ({ trigger, ref, commitSha }: Pick<BuildTrigger, "trigger" | "ref" | "commitSha">) =>
  JSON.stringify([trigger, ref, commitSha]);
