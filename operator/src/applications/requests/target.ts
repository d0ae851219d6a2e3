/** Which projects are scaled by requests, and what that makes of them. */

import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { organizationOfNamespace, type Project } from "@slipway/crds";
import type { ProjectContext } from "../../projects/kind.ts";
import { childOf, type ProjectStores } from "../../projects/stores.ts";
import type { Decision, Target } from "./least-instances.ts";

/** With the project itself. */
export interface ProjectTarget extends Target {
  project: { namespace: string; name: string };
}

/** What reconciles need of what was decided, by the project's uid. */
export interface RequestScaling {
  /** Least instances; undefined until they were once decided. */
  leastOf(uid: string | undefined): number | undefined;
  /** What changed them last; undefined while this process has changed nothing. */
  decisionOf(uid: string | undefined): Decision | undefined;
}

type HorizontalPodAutoscaler = KubernetesObject & { spec?: { minReplicas?: number } };
type Children = Pick<ProjectStores, "children">;

/** A project that is scaled by its requests; undefined for every other one. @param live the least of its autoscaler now */
export function targetOf({ metadata, spec }: Project, live: number | undefined): ProjectTarget | undefined {
  const { namespace = "", name, uid } = metadata;
  const organization = organizationOfNamespace(namespace);
  const perInstance = perInstanceOf(spec);
  if (perInstance === undefined || metadata.deletionTimestamp || !uid || organization === undefined) {
    return undefined;
  }
  return {
    ...{ uid, perInstance, live, project: { namespace, name } },
    key: `${organization}/${name}`,
    min: spec.instances ?? 1,
    max: spec.autoscaling?.maxInstances ?? 1,
  };
}

/** The least that a project's autoscaler has now. */
export function liveLeast(stores: Children, project: Project): number | undefined {
  const autoscaler = childOf<HorizontalPodAutoscaler>(stores, resources.horizontalPodAutoscalers, project);
  return autoscaler?.spec?.minReplicas;
}

/** Instances that a project's requests need; what its autoscaler has until that is decided. Undefined for one that is not scaled by them. */
export function leastInstances(
  project: Project,
  { requestScaling, stores }: { requestScaling?: RequestScaling; stores: Children },
): number | undefined {
  if (requestScaling === undefined || perInstanceOf(project.spec) === undefined) {
    return undefined;
  }
  return requestScaling.leastOf(project.metadata.uid) ?? liveLeast(stores, project);
}

/**
 * What was decided last about a project, in its status. It is written when it changes, and stays when another operator leads.
 * An Event once it no longer holds because requests are not counted any more.
 */
export function reportRequestScaling(
  { metadata, spec }: Project,
  requestScaling: RequestScaling | undefined,
  { status, event }: Pick<ProjectContext, "status" | "event">,
): void {
  const isTarget = perInstanceOf(spec) !== undefined;
  if (requestScaling !== undefined && isTarget) {
    status.requestScaling = requestScaling.decisionOf(metadata.uid) ?? status.requestScaling;
    return;
  }
  if (isTarget && status.requestScaling !== undefined) {
    event("Warning", "RequestsNotCounted", "The platform counts no requests: other targets alone scale it.");
  }
  status.requestScaling = undefined;
}

/** Requests a second for each instance; undefined for a project that is not scaled by them. */
function perInstanceOf({ type, paused, autoscaling }: Project["spec"]): number | undefined {
  return type === "http" && !paused && autoscaling?.enabled ? autoscaling.requestsPerSecondTarget : undefined;
}
