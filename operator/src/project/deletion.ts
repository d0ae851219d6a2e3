/** Takes a project out of the cluster, in an order in which nothing is left behind and no request meets a dead end. */

import { labels, type Project } from "@slipway/crds";
import {
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  type ListOptions,
  type Resource,
  resources,
} from "@slipway/kube";
import { middlewareResource } from "../resources.ts";
import { controllerOf } from "../runtime/owner.ts";
import type { Finding } from "./summarize.ts";

/** Step by step: nothing of a step is touched before everything of the one before is gone. */
const STEPS: readonly { delete: readonly Resource[]; gone: readonly Resource[]; waiting: Finding }[] = [
  {
    delete: [resources.ingresses],
    gone: [resources.ingresses],
    waiting: { reason: "DeletingChildren", message: "The public route is being removed." },
  },
  {
    delete: [resources.horizontalPodAutoscalers, resources.podDisruptionBudgets, resources.deployments],
    gone: [resources.deployments, resources.replicaSets, resources.pods],
    waiting: { reason: "DeletingChildren", message: "Instances are being stopped." },
  },
  {
    delete: [
      resources.services,
      resources.networkPolicies,
      middlewareResource,
      resources.persistentVolumeClaims,
      resources.secrets,
    ],
    gone: [resources.persistentVolumeClaims],
    waiting: { reason: "DeletingChildren", message: "The volume is being removed." },
  },
];

/** Number of the step after which the hostnames may be given back. */
export const ROUTE_STEP = 0;

/**
 * Deletes what is left of one step, read live.
 * @returns what is waited for, or undefined when the step is done
 */
export async function runDeletionStep(
  index: number,
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  const step = STEPS[index];
  if (!step) {
    return undefined;
  }
  for (const resource of step.delete) {
    for (const { metadata } of await children(resource, project, client, signal)) {
      if (!metadata?.deletionTimestamp) {
        const { name = "", namespace, uid } = metadata ?? {};
        await client.delete(resource, { name, namespace }, { uid, signal });
      }
    }
  }
  for (const resource of step.gone) {
    if ((await children(resource, project, client, signal)).length > 0) {
      return step.waiting;
    }
  }
  return undefined;
}

/** How many steps a deletion has. */
export const DELETION_STEPS = STEPS.length;

async function children(
  resource: Resource,
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<KubernetesObject[]> {
  const { namespace, name } = project.metadata;
  const labelSelector = `${labels.project}=${name}`;
  const found = await listServed(resource, client, { namespace, labelSelector, signal });
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
 * A labelled object that someone else controls is not the project's. ReplicaSets are controlled by the Deployment, which is
 * gone when they are waited for, and pods by them; nobody would ever end a pod that somebody made by hand. Env Secrets may
 * not have been adopted yet.
 */
function belongs(object: KubernetesObject, resource: Resource, project: Project): boolean {
  const owner = controllerOf(object);
  const { name } = project.metadata;
  if (resource === resources.replicaSets) {
    return owner?.kind === "Deployment" && owner.name === name;
  }
  if (resource === resources.pods) {
    return owner?.kind === "ReplicaSet" && owner.name.startsWith(`${name}-`);
  }
  return owner ? owner.uid === project.metadata.uid : resource === resources.secrets;
}
