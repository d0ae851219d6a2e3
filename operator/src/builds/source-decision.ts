/** What is to be done about a project's source that nobody but the operator looks after. Pure. */

import {
  type BuildRequest,
  buildIdOf,
  firstBuildId,
  labels,
  type Project,
  recordedSource,
  sourceRevision,
} from "@slipway/crds";
import { triggerMode } from "@slipway/git";

/** For so long `/v1` may be about to ask for the first build of a project that it has created. */
export const CREATION_MS = 60_000;

export type SourceDecision =
  | { do: "nothing" }
  | { do: "wait"; afterMs: number }
  /** Notes the revision, after a build that is asked for. */
  | { do: "note"; build?: { id: string; asked: BuildRequest } };

/** Whether the decision stands on what the ledger tells; otherwise it need not be asked. */
export function asksLedger(project: Project): boolean {
  const { spec, status } = project;
  if (spec.source === undefined && spec.github === undefined) {
    return false;
  }
  if (status?.build?.lastBuild !== undefined || status?.build?.imageBuild !== undefined) {
    return false;
  }
  return recordedSource(project) !== "now" || isUntouched(project);
}

/** A project that was put back as it was once exported has its notes, and nothing to run. */
const isUntouched = ({ status }: Project): boolean =>
  status?.build === undefined && status?.buildFailure === undefined && !status?.deployments?.length;

/**
 * A source without any build gets its first one, unless `/v1` was given it for a project that runs something else. A change that
 * did not come through `/v1` is noted, and built at once where pushes are published.
 *
 * @param hasBuild whether any build of the project was ever asked for
 */
export function decideSource(project: Project, hasBuild: boolean, now: Date): SourceDecision {
  const { metadata, spec } = project;
  const { name, uid = "" } = metadata;
  const recorded = recordedSource(project);
  const source = spec.source ?? spec.github;
  if (metadata.deletionTimestamp !== undefined) {
    return { do: "nothing" };
  }
  if (source === undefined) {
    return { do: recorded === "before" ? "note" : "nothing" };
  }
  if (recorded === "now" && !(isUntouched(project) && !hasBuild)) {
    return { do: "nothing" };
  }
  if (!hasBuild) {
    // As it stands on those that `/v1` has created.
    const isOfApi = metadata.labels?.[labels.project] === name;
    const left = Date.parse(metadata.creationTimestamp ?? "") + CREATION_MS - now.getTime();
    if (isOfApi && left > 0) {
      return { do: "wait", afterMs: left };
    }
    // Whoever creates a project anew under its old name may not find a build of the one before.
    const id = isOfApi && recorded === "never" ? firstBuildId(name) : buildIdOf("first build of", name, uid);
    return { do: "note", build: { id, asked: { triggeredBy: "creation", branch: source.branch } } };
  }
  if (recorded === "before" && triggerMode(source) === "push") {
    const id = buildIdOf("settings of", name, uid, String(sourceRevision(project)));
    return { do: "note", build: { id, asked: { triggeredBy: "settings", branch: source.branch } } };
  }
  return { do: "note" };
}
