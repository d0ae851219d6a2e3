/** The rollout of a build's image in its project. Pure. */

import type { Build, Project } from "@slipway/crds";
import { rollbackOf } from "../projects/images/built-image.ts";
import type { ProjectState } from "./decide.ts";
import { requestedAt } from "./queue.ts";

/** @param project undefined when it was deleted, or another one has its id */
export function projectState(build: Build, project: Project | undefined): ProjectState | undefined {
  if (!project || project.metadata.deletionTimestamp) {
    return undefined;
  }
  const { imageBuild, imageBuildAt } = project.status?.build ?? {};
  const at = requestedAt(build);
  // A rollback to an earlier version supersedes builds in progress.
  const isRolledBack = (rollbackOf(project)?.at ?? "") >= at;
  const isDeployed = !isRolledBack && imageBuild === build.metadata.name;
  const isSuperseded =
    isRolledBack ||
    (!isDeployed &&
      imageBuild !== undefined &&
      (imageBuildAt ?? "") >= at &&
      !(imageBuildAt === at && imageBuild < build.metadata.name));
  return { isDeployed, isSuperseded, ...rollout(build, project) };
}

/** The state of the digest's rollout: its deployment has ended, or the project does not deploy it now. */
function rollout(build: Build, { spec, status }: Project): Pick<ProjectState, "rollout" | "rolloutMessage"> {
  const digest = build.status?.image?.digest;
  if (digest === undefined) {
    return { rollout: "waiting" };
  }
  // A job's next run uses it; a paused project does when it is resumed.
  if (spec.type === "job" || spec.paused) {
    return { rollout: "served" };
  }
  const newest = status?.deployments?.[0];
  if (newest?.image.digest !== digest) {
    return { rollout: "waiting" };
  }
  switch (newest.status) {
    case "succeeded":
      return { rollout: "served" };
    case "failed":
      return { rollout: "failed", rolloutMessage: newest.message };
    default:
      return { rollout: "waiting" };
  }
}
