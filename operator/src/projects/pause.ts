/** A pause takes effect for a rejected spec, too: the project's quota may be another's already. */

import { controllerOf, type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations, fieldManagers, type Project } from "@slipway/crds";
import type { PodView } from "../applications/pod-problem.ts";
import { type DeploymentView, type Rollout, readRollout } from "../applications/rollout.ts";
import { childOf, type ProjectStores } from "./stores.ts";

/** A Deployment as a pause reads it. */
export type LiveDeployment = KubernetesObject & DeploymentView;

/**
 * Stops the instances of a paused project, and deletes the autoscaler, which would start some again. It sets what an apply of the project's
 * objects sets, too , by the same field manager, so that neither reverts the other.
 */
export async function stopInstances(
  project: Project,
  { client, stores }: { client: KubeClient; stores: ProjectStores },
  signal: AbortSignal,
): Promise<void> {
  if (!project.spec.paused) {
    return;
  }
  const isOwn = (object: KubernetesObject | undefined): object is KubernetesObject =>
    object !== undefined &&
    !object.metadata?.deletionTimestamp &&
    controllerOf(object)?.uid === project.metadata.uid;
  const autoscaler = childOf(stores, resources.horizontalPodAutoscalers, project);
  if (isOwn(autoscaler)) {
    const { name = "", namespace, uid } = autoscaler.metadata ?? {};
    await client.delete(resources.horizontalPodAutoscalers, { name, namespace }, { uid, signal });
  }
  const deployment = childOf<LiveDeployment>(stores, resources.deployments, project);
  if (isOwn(deployment) && deployment.spec?.replicas !== 0) {
    const { name = "", namespace, uid } = deployment.metadata ?? {};
    const none = { metadata: { uid }, spec: { replicas: 0 } };
    const options = { fieldManager: fieldManagers.project, signal };
    const written = await client.patch(resources.deployments, { name, namespace }, none, options);
    stores.children.find(({ resource }) => resource === resources.deployments)?.store.observe(written);
  }
}

/** The rollout state of a project's existing instances, for any spec. Without any, it is complete. */
export function readInstances(deployment: DeploymentView | undefined, pods: readonly PodView[]): Rollout {
  const current = deployment?.spec?.template?.metadata?.annotations;
  const rollout = readRollout(deployment, pods, {
    settingsHash: current?.[annotations.settingsHash] ?? "",
    image: "",
  });
  return deployment ? rollout : { ...rollout, complete: true };
}
