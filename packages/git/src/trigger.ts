/** What an event starts: the one place that knows the modes of publication. */

import type { GitEvent } from "./delivery/event.ts";
import { matchesTag } from "./tag-pattern.ts";

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

/** A build that an event asks for. */
export type TriggeredBuild =
  | { trigger: "push"; branch: string; commitSha: string }
  | { trigger: "tag" | "release"; tag: string; commitSha?: string };

/** The mode of publication; exactly one holds. */
export type TriggerMode = "manual" | "push" | "tag" | "release";

/** The mode that settings mean. Both switches on is refused where they are written; here versions win. */
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
