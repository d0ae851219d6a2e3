/** Deletes the objects of a project, read live, step by step. */

import {
  controllerOf,
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  type ListOptions,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import { isDatabaseType, labels, organizationOfNamespace, type Project } from "@slipway/crds";
import { middlewareResource } from "../resources.ts";
import type { Finding } from "./status.ts";
import { childrenOf, type ProjectStores } from "./stores.ts";

/** A step begins once every object that the one before awaits is deleted. */
export interface DeletionStep {
  delete: readonly Resource[];
  pending: readonly Resource[];
  waiting: Finding;
}

/** Poll interval of a deletion for what it waits for, in milliseconds. */
export const DELETION_POLL_INTERVAL_MS = 2_000;

/** Where the children of a project are read. */
export interface DeletionReads {
  client: KubeClient;
  /** What the watches have; without it, everything is read live. */
  stores?: Pick<ProjectStores, "children">;
}

/**
 * Children that their project always controls. They are deleted as the watches have them, since a list reads all of the organization's
 * objects: one that a watch does not have yet is garbage collected with the project.
 */
const CONTROLLED: readonly Resource[] = [
  resources.ingresses,
  resources.horizontalPodAutoscalers,
  resources.podDisruptionBudgets,
  resources.deployments,
  resources.statefulSets,
  resources.services,
  resources.endpointSlices,
  resources.networkPolicies,
  resources.roleBindings,
  resources.roles,
  resources.serviceAccounts,
  middlewareResource,
];

/**
 * Deletes what is left of one step. That what it awaits is gone is always read live.
 * @returns what is waited for, or undefined when the step is done
 */
export async function runDeletionStep(
  step: DeletionStep,
  project: Project,
  { client, stores }: DeletionReads,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  for (const resource of step.delete) {
    const children =
      watchedChildren(resource, project, stores) ?? (await liveChildren(resource, project, client, signal));
    for (const { metadata } of children) {
      if (!metadata?.deletionTimestamp) {
        const { name = "", namespace, uid } = metadata ?? {};
        await client.delete(resource, { name, namespace }, { uid, signal });
      }
    }
  }
  // The watch reports its end.
  if (step.pending.some((resource) => watchedChildren(resource, project, stores)?.some(isTerminating))) {
    return step.waiting;
  }
  for (const resource of step.pending) {
    if ((await liveChildren(resource, project, client, signal)).length > 0) {
      return step.waiting;
    }
  }
  return undefined;
}

/** The same as {@link liveChildren}, as last observed; undefined for kinds that are to be read live. */
function watchedChildren(
  resource: Resource,
  project: Project,
  stores: DeletionReads["stores"],
): KubernetesObject[] | undefined {
  if (!CONTROLLED.includes(resource) || !stores?.children.some((child) => child.resource === resource)) {
    return undefined;
  }
  return isInOrganization(project)
    ? childrenOf(stores, resource, project).filter((object) => belongs(object, resource, project))
    : [];
}

/** Outside of organizations nothing is ever created, and not all kinds may be listed. */
const isInOrganization = ({ metadata }: Project): boolean =>
  organizationOfNamespace(metadata.namespace ?? "") !== undefined;

const isTerminating = ({ metadata }: KubernetesObject): boolean => metadata?.deletionTimestamp !== undefined;

/** What of one kind belongs to a project now; of Secrets the metadata alone. */
export async function liveChildren(
  resource: Resource,
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<KubernetesObject[]> {
  const { namespace, name } = project.metadata;
  if (!isInOrganization(project)) {
    return [];
  }
  const labelSelector = `${labels.project}=${name}`;
  const metadataOnly = resource === resources.secrets;
  const found = await listServed(resource, client, { namespace, labelSelector, metadataOnly, signal });
  return found.filter((object) => belongs(object, resource, project));
}

/** What a cluster does not serve (the ingress controller's own kinds) it has none of. */
async function listServed(
  resource: Resource,
  client: KubeClient,
  options: ListOptions,
): Promise<KubernetesObject[]> {
  try {
    return await client.listAll<KubernetesObject>(resource, options);
  } catch (error) {
    if (isNotFound(error)) {
      return [];
    }
    throw error;
  }
}

/**
 * A labelled object that someone else controls is not the project's. ReplicaSets are controlled by the Deployment, and Jobs
 * by the CronJob or the JobRun, which are deleted by the time their end is awaited, and pods by them; a pod that was created by
 * hand would never be deleted. Env Secrets may not have been adopted yet.
 */
function belongs(object: KubernetesObject, resource: Resource, project: Project): boolean {
  const owner = controllerOf(object);
  const { name } = project.metadata;
  switch (resource) {
    case resources.replicaSets:
      return owner?.kind === "Deployment" && owner.name === name;
    case resources.jobs:
      return object.metadata?.name?.startsWith(`${name}-`) === true;
    case resources.pods:
      return isDatabaseType(project.spec.type)
        ? owner?.kind === "StatefulSet" && owner.name === name
        : owner?.kind === podController(project) && owner.name.startsWith(`${name}-`);
    // A StatefulSet's claims belong to nobody, nor does what Patroni keeps its state in.
    case resources.persistentVolumeClaims:
    case resources.configMaps:
      return owner ? owner.uid === project.metadata.uid : isDatabaseType(project.spec.type);
    default:
      return owner ? owner.uid === project.metadata.uid : resource === resources.secrets;
  }
}

/** A pod of the other kind is somebody's who debugs. */
const podController = ({ spec }: Project) => (spec.type === "job" ? "Job" : "ReplicaSet");
