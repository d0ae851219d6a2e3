/** What a Project tells of the image that a build gave it. Pure. */

import type { Build, Project } from "@slipway/crds";
import { rollbackOf } from "../projects/images/built-image.ts";
import type { ProjectView } from "./decide.ts";
import { requestedAt } from "./queue.ts";

/** @param project undefined when it is gone, or is another one of the same id */
export function projectView(build: Build, project: Project | undefined): ProjectView | undefined {
  if (!project || project.metadata.deletionTimestamp) {
    return undefined;
  }
  const { imageBuild, imageBuildAt } = project.status?.build ?? {};
  const at = requestedAt(build);
  // Whoever went back to an earlier version wants none that was under way.
  const isRolledBack = (rollbackOf(project)?.at ?? "") >= at;
  const isHandedOver = !isRolledBack && imageBuild === build.metadata.name;
  const isOvertaken =
    isRolledBack ||
    (!isHandedOver &&
      imageBuild !== undefined &&
      (imageBuildAt ?? "") >= at &&
      !(imageBuildAt === at && imageBuild < build.metadata.name));
  return { isHandedOver, isOvertaken, ...rollout(build, project) };
}

/** What became of the digest that is to run: a deployment of it has ended, or there is nothing that would run it. */
function rollout(build: Build, { spec, status }: Project): Pick<ProjectView, "rollout" | "rolloutMessage"> {
  const digest = build.status?.image?.digest;
  if (digest === undefined) {
    return { rollout: "waiting" };
  }
  // A job's next run takes it; a paused project does when it goes on.
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
