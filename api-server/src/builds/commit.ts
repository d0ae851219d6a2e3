import type { Project } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { KnownRequest } from "./object.ts";
import type { OpenedSource } from "./opened-source.ts";
import { modeOf, sourceOf } from "./settings.ts";
import { latestRelease, latestTag } from "./version.ts";

/** Which commit a deploy is of. */

export interface WantedRef {
  branch?: string | undefined;
  commitSha?: string | undefined;
}

/**
 * What a manual deploy builds: the branch's newest commit or the one that is named; where versions are
 * published, the latest one that matches.
 *
 * @throws Failure 400 GIT_VERSION_REF_OVERRIDE where versions are published and a ref is named; 404 GIT_REF_NOT_FOUND; 409
 *   GIT_VERSION_NOT_FOUND; what asking the server throws
 */
export async function manualRequest(
  { spec }: Pick<Project, "spec">,
  wanted: WantedRef,
  opened: Pick<OpenedSource, "call">,
  triggeredBy: KnownRequest["triggeredBy"] = "manual",
): Promise<KnownRequest> {
  refuseOverride(spec, wanted);
  const source = sourceOf(spec);
  if (source === undefined) {
    throw failures.gitSourceRequired();
  }
  const mode = modeOf(source);
  if (mode === "tag" || mode === "release") {
    const { tagPattern = "*", includePrereleases = false } = source.versionDeploy ?? {};
    return { triggeredBy, ...(await latestVersion(mode, tagPattern, includePrereleases, opened)) };
  }
  const branch = wanted.branch ?? source.branch;
  const { sha, title } = await opened.call((server, id) => server.commit(id, wanted.commitSha ?? branch));
  return { triggeredBy, branch, commitSha: sha, commitMessage: title };
}

/** @throws Failure 400 */
export function refuseOverride({ source, github }: Project["spec"], { branch, commitSha }: WantedRef): void {
  const own = source ?? github;
  if (own === undefined || !["tag", "release"].includes(modeOf(own))) {
    return;
  }
  if (branch !== undefined || commitSha !== undefined) {
    throw failures.gitVersionRefOverride();
  }
}

async function latestVersion(
  mode: "tag" | "release",
  pattern: string,
  includePrereleases: boolean,
  { call }: Pick<OpenedSource, "call">,
): Promise<{ tag: string; commitSha: string; commitMessage: string }> {
  const tag =
    mode === "tag"
      ? latestTag(await call((server, id) => server.tags(id)), pattern)?.name
      : latestRelease(await call((server, id) => server.releases(id)), pattern, includePrereleases)?.tag;
  if (tag === undefined) {
    throw failures.gitVersionNotFound(pattern);
  }
  const { sha, title } = await call((server, id) => server.commit(id, tag));
  return { tag, commitSha: sha, commitMessage: title };
}
