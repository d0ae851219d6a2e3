import { matchesTag, type Release, type Tag } from "@slipway/git";

/** Which version a manual deploy publishes where tags or releases are published. Pure. */

/** `v1.2.3`, `1.2`, `release-1.2.3-rc.1`: numbers, and what makes it a prerelease. */
const VERSION =
  /(?:^|[^0-9A-Za-z.])v?([0-9]{1,15}(?:\.[0-9]{1,15})*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

interface Version {
  numbers: number[];
  prerelease: string[] | undefined;
}

function versionOf(name: string): Version | undefined {
  const found = VERSION.exec(name);
  if (!found) return undefined;
  return { numbers: (found[1] ?? "").split(".").map(Number), prerelease: found[2]?.split(".") };
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
  const length = Math.max(a.numbers.length, b.numbers.length);
  for (let at = 0; at < length; at += 1) {
    const difference = (a.numbers[at] ?? 0) - (b.numbers[at] ?? 0);
    if (difference !== 0) return difference;
  }
  // A prerelease comes before what it leads to.
  if (a.prerelease === undefined || b.prerelease === undefined) {
    return Number(a.prerelease === undefined) - Number(b.prerelease === undefined);
  }
  return compareIdentifiers(a.prerelease, b.prerelease);
}

function compareIdentifiers(a: readonly string[], b: readonly string[]): number {
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    const [one, other] = [a[at], b[at]];
    if (one === undefined || other === undefined) return one === undefined ? -1 : 1;
    if (one === other) continue;
    const [isNumber, isOtherNumber] = [one, other].map((text) => /^[0-9]+$/.test(text));
    if (isNumber && isOtherNumber) return Number(one) - Number(other);
    // Numbers come before words.
    if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
    return one < other ? -1 : 1;
  }
  return 0;
}
