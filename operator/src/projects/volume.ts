/** The one volume of an HTTP project or a job. */

import { type KubeClient, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { type Growth, growClaims, type VolumeClaim } from "../workload/growth.ts";
import type { ProjectContext } from "./kind.ts";
import { reportGrowth } from "./status.ts";
import { childOf, type ProjectStores } from "./stores.ts";

/** Its claim, as last observed by the watch. */
export function claimOf(stores: ProjectStores, project: Project): VolumeClaim | undefined {
  return childOf<VolumeClaim>(stores, resources.persistentVolumeClaims, project);
}

/** Requests a larger volume where it is smaller than the project's, and records a refusal. */
export async function growVolume(
  project: Project,
  { client, stores }: { client: KubeClient; stores: ProjectStores },
  context: Pick<ProjectContext, "event" | "signal">,
): Promise<Growth> {
  const claim = claimOf(stores, project);
  const { storage } = project.spec;
  if (!claim || !storage?.persistent) {
    return {};
  }
  const growth = await growClaims([claim], storage.capacity, client, context.signal);
  reportGrowth(project, growth, context);
  return growth;
}
