import type { Project } from "@slipway/crds";
import { matchesTag, type Release, type Tag } from "@slipway/git";
import { parse, type SemVer } from "semver";
import { failures } from "../errors/catalog.ts";
import { modeOf, sourceOf } from "./settings.ts";
import type { OpenedSource } from "./source.ts";
import type { KnownRequest } from "./start.ts";

/** Resolves the commit that a deploy builds. */

export interface WantedRef {
  branch?: string | undefined;
  commitSha?: string | undefined;
}

/**
 * What a manual deploy builds: the branch's newest commit or the one that is named; where versions are
 * published, the latest one that matches.
 *
 * @throws Failure 400 GIT_VERSION_REF_OVERRIDE where versions are published and a ref is named; 404 GIT_REF_NOT_FOUND; 409
 *   GIT_VERSION_NOT_FOUND; what requests to the server throw
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
  const { sha, title } = await opened.call((server, id) =>
    server.commit(id, wanted.commitSha ?? branch, { isPushed: true }),
  );
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

/** Which version a manual deploy publishes where tags or releases are published. Pure. */

/** Longest name that is read as a version; Git itself keeps no longer one in a file of its own. */
const NAME_MAX_LENGTH = 255;

/** `v1.2.3`, `1.2`, `release-1.2.3-rc.1`: a version at the end of a name. Every part is bounded, so it takes linear time. */
const VERSION =
  /(?:^|[^0-9A-Za-z.])v?([0-9]{1,15}(?:\.[0-9]{1,15}){0,7})(-[0-9A-Za-z.-]{1,128})?(?:\+[0-9A-Za-z.-]{1,128})?$/;

interface Version {
  semver: SemVer;
  /** Numbers beyond the three of Semantic Versioning. */
  more: readonly number[];
}

function versionOf(name: string): Version | undefined {
  const found = name.length <= NAME_MAX_LENGTH ? VERSION.exec(name) : null;
  if (!found) {
    return undefined;
  }
  const numbers = (found[1] ?? "").split(".").map(Number);
  const [major = 0, minor = 0, patch = 0, ...more] = numbers;
  const semver = parse(`${major}.${minor}.${patch}${found[2] ?? ""}`, { loose: true });
  return semver ? { semver, more } : undefined;
}

/**
 * The tag that counts as the latest of those that match: the highest version (Semantic Versioning's order), or the first as
 * the server lists them where none has the form of one.
 */
export function latestTag(tags: readonly Tag[], pattern: string): Tag | undefined {
  const matching = tags.filter(({ name }) => matchesTag(pattern, name));
  const versions = matching.flatMap((tag) => {
    const version = versionOf(tag.name);
    return version === undefined ? [] : [{ tag, version }];
  });
  const [highest] = versions.toSorted((a, b) => compareVersions(b.version, a.version));
  return highest?.tag ?? matching[0];
}

/** The release that was published last of those that match; drafts never. @param releases the newest first */
export function latestRelease(
  releases: readonly Release[],
  pattern: string,
  includePrereleases: boolean,
): Release | undefined {
  const published = ({ publishedAt }: Release): number => Date.parse(publishedAt ?? "") || 0;
  return releases
    .filter(({ tag, draft, prerelease }) => {
      return !draft && (includePrereleases || !prerelease) && matchesTag(pattern, tag);
    })
    .toSorted((a, b) => published(b) - published(a))[0];
}

function compareVersions(a: Version, b: Version): number {
  return a.semver.compareMain(b.semver) || compareMore(a, b) || a.semver.comparePre(b.semver);
}

function compareMore(a: Version, b: Version): number {
  const length = Math.max(a.more.length, b.more.length);
  const differences = Array.from({ length }, (_, at) => (a.more[at] ?? 0) - (b.more[at] ?? 0));
  return differences.find((difference) => difference !== 0) ?? 0;
}
