/** The one volume of an HTTP project or a job. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { type Growth, growClaims, type VolumeClaim } from "../workload/pvc.ts";
import type { ProjectContext } from "./kind.ts";
import { childOf, type ProjectStores } from "./stores.ts";

/** Its claim, as last observed by the watch. */
export function claimOf(stores: ProjectStores, project: Project): VolumeClaim | undefined {
  return childOf<VolumeClaim>(stores, resources.persistentVolumeClaims, project);
}

/** Whether a project's volume is bound. */
export function isVolumeBound(stores: ProjectStores, project: Project): boolean {
  type Claim = KubernetesObject & { status?: { phase?: string } };
  return childOf<Claim>(stores, resources.persistentVolumeClaims, project)?.status?.phase === "Bound";
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

/** Records that a volume cannot grow, once for each time that it begins to be so. */
export function reportGrowth(
  project: Project,
  { obstacle, refusal }: Growth,
  { event }: { event(type: "Warning", reason: string, note: string): void },
): void {
  const known = project.status?.conditions?.some((condition) => condition.reason === obstacle);
  if (obstacle && !known) {
    event("Warning", obstacle, `A volume cannot grow, and keeps its size: ${refusal ?? "it was refused"}`);
  }
}
