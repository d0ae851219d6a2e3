import { databasePodName } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";

/**
 * The instance that a snapshot is asked of: the one that takes writes, unless another is named.
 * @throws Failure 404 for one that the project has not
 */
export function snapshotInstance(project: ApiProject, asked: string | undefined): string {
  const { id, instances, resource } = project;
  const { database, currentInstances = 0 } = resource.status ?? {};
  if (asked === undefined) {
    return database?.primary ?? databasePodName(id, 0);
  }
  // More than are asked for while some are being stopped.
  const most = Math.max(instances, currentInstances);
  const known = Array.from({ length: most }, (_, ordinal) => databasePodName(id, ordinal));
  if (!known.includes(asked)) {
    throw failures.instanceNotFound(asked);
  }
  return asked;
}
