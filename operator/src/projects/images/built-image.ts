/** What a project that is built from Git runs: the image that a build gave it. Pure. */

import type { ConditionSet } from "@slipway/controller-runtime";
import {
  BUILDS_PULL_SECRET,
  type Project,
  type ProjectConditionCatalog,
  type ProjectReason,
  type Rollback,
  withFormerState,
} from "@slipway/crds";
import { TerminalError, WaitingError } from "../../reconcile-errors.ts";

/** Whether a project is built from Git. */
export const isBuilt = ({ spec }: Pick<Project, "spec">): boolean =>
  spec.source !== undefined || spec.github !== undefined;

/** Whether a project's image is pulled with the organization's Secret. */
export const pullsBuilt = ({ spec }: Pick<Project, "spec">): boolean =>
  spec.image?.pullSecretRef?.name === BUILDS_PULL_SECRET;

/** The last rollback of a project that is built, its moment with milliseconds, so that moments compare as text. */
export function rollbackOf(project: Pick<Project, "metadata" | "spec">): Rollback | undefined {
  const { rollback } = withFormerState(project);
  return rollback && { ...rollback, at: new Date(rollback.at).toISOString() };
}

/** The image that a build or a rollback, whichever came last, has left to run. */
export function builtImage(project: Project): { url: string; digest: string } | undefined {
  const { image, imageBuildAt = "" } = project.status?.build ?? {};
  if (image?.reference === undefined || image.digest === undefined) {
    return undefined;
  }
  const rollback = rollbackOf(project);
  const isRolledBack = rollback !== undefined && rollback.at >= imageBuildAt;
  return { url: image.reference, digest: isRolledBack ? rollback.digest : image.digest };
}

/**
 * The project as it is carried out: one that is built from Git has the image of a build as its own, by digest. Without one it has
 * none, like a project whose spec names none.
 */
export function withBuiltImage(project: Project): Project {
  const image = isBuilt(project) ? builtImage(project) : undefined;
  if (image === undefined) {
    return project;
  }
  const pullSecretRef = { name: BUILDS_PULL_SECRET };
  return { ...project, spec: { ...project.spec, image: { ...image, isPublic: false, pullSecretRef } } };
}

/** Why the newest build has left no image; undefined when it has not failed, or another one is under way. */
function failureOf({
  status,
}: Project): NonNullable<NonNullable<Project["status"]>["buildFailure"]> | undefined {
  const { build, buildFailure } = status ?? {};
  const isOver = build?.lastBuild === undefined || build.lastBuild === buildFailure?.buildId;
  return isOver ? buildFailure : undefined;
}

const PENDING: { reason: ProjectReason; message: string } = {
  reason: "BuildPending",
  message: "The application has not been built yet.",
};

/** Reports a project's builds: a failed one does not affect the version that serves, so no other condition repeats it. */
export function setBuildCondition(project: Project, conditions: ConditionSet<ProjectConditionCatalog>): void {
  const type = "BuildSucceeded";
  const failure = failureOf(project);
  if (!isBuilt(project)) {
    conditions.remove(type);
  } else if (failure) {
    conditions.set({ type, status: "False", reason: "BuildFailed", message: failure.message });
  } else if (project.status?.build?.publishedBuild !== undefined) {
    conditions.set({ type, status: "True", reason: "BuildSucceeded" });
  } else {
    conditions.set({ type, status: "False", ...PENDING });
  }
}

/** @throws WaitingError or TerminalError about the condition `Accepted` while there is nothing to run */
export function requireBuilt(project: Project): void {
  if (!isBuilt(project) || builtImage(project) !== undefined) {
    return;
  }
  const condition = "Accepted";
  const failure = failureOf(project);
  if (failure) {
    const message = failure.message ?? "The build has failed.";
    throw new TerminalError("BuildFailed", message, { condition });
  }
  throw new WaitingError(PENDING.reason, PENDING.message, { condition, requeueAfterMs: 60_000 });
}
