/** Which build an event of a Git server starts, by the project's mode of publication and its tag pattern. */

import type { GitEvent } from "./delivery/read.ts";

/** Publication by tag or by release. */
export interface VersionDeploy {
  enabled: boolean;
  event?: "tag" | "release";
  tagPattern?: string;
  includePrereleases?: boolean;
}

/** The part of a project's source that says when it is published. */
export interface TriggerSettings {
  branch: string;
  autoDeploy: boolean;
  /** Older sources have none: neither tags nor releases start anything. */
  versionDeploy?: VersionDeploy;
}

/** A build that an event starts. */
export type TriggeredBuild =
  | { trigger: "push"; branch: string; commitSha: string }
  | { trigger: "tag" | "release"; tag: string; commitSha?: string };

/** The mode of publication; exactly one applies. */
export type TriggerMode = "manual" | "push" | "tag" | "release";

/** The mode of these settings. Validation rejects both switches on; here versions have precedence. */
export function triggerMode({ autoDeploy, versionDeploy }: TriggerSettings): TriggerMode {
  if (versionDeploy?.enabled) {
    return versionDeploy.event ?? "tag";
  }
  return autoDeploy ? "push" : "manual";
}

/** The build that the event starts for a project with these settings; undefined when it starts none. */
export function triggeredBy(event: GitEvent, settings: TriggerSettings): TriggeredBuild | undefined {
  if (triggerMode(settings) !== event.kind) {
    return undefined;
  }
  if (event.kind === "push") {
    if (event.branch !== settings.branch) {
      return undefined;
    }
    return { trigger: "push", branch: event.branch, commitSha: event.commitSha };
  }
  const { tagPattern = "*", includePrereleases = false } = settings.versionDeploy ?? {};
  if (!matchesTag(tagPattern, event.tag)) {
    return undefined;
  }
  if (event.kind === "tag") {
    const { tag, commitSha } = event;
    return { trigger: "tag", tag, ...(commitSha === undefined ? {} : { commitSha }) };
  }
  if (event.draft || (event.prerelease && !includePrereleases)) {
    return undefined;
  }
  return { trigger: "release", tag: event.tag };
}

/** Longest tag pattern, in characters. */
export const TAG_PATTERN_MAX_LENGTH = 255;

// A pattern is a full tag name, case-sensitive, with the wildcards `*` (any sequence) and `?` (one character). Character classes,
// braces, negation, extended globs such as +(v), escapes and control characters are other glob syntax: rejected.
const TAG_PATTERN = /^(?:[^\p{Cc}\\[\]{}!?*+@]|[?*+@]+(?:[^\p{Cc}\\[\]{}!?*+@(]|$))+$/u;

/** Whether a text may be a tag pattern. */
export function isTagPattern(text: string): boolean {
  return [...text].length <= TAG_PATTERN_MAX_LENGTH && TAG_PATTERN.test(text);
}

/**
 * Whether a tag's whole name matches the pattern. A character is a Unicode code point. It takes at most the product of both
 * lengths in steps: tenants write both, and a regular expression could backtrack without end.
 */
export function matchesTag(pattern: string, tag: string): boolean {
  const wanted = [...pattern];
  const given = [...tag];
  let at = 0;
  let star = -1;
  let resume = 0;
  for (let index = 0; index < given.length; ) {
    // A star in the pattern is a wildcard even where the tag has one, too.
    if (wanted[at] === "*") {
      star = at;
      resume = index;
      at += 1;
    } else if (at < wanted.length && (wanted[at] === "?" || wanted[at] === given[index])) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      resume += 1;
      index = resume;
      at = star + 1;
    } else {
      return false;
    }
  }
  while (wanted[at] === "*") {
    at += 1;
  }
  return at === wanted.length;
}
