import { matchesTag, type Release, type Tag } from "@slipway/git";
import { parse, type SemVer } from "semver";

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
