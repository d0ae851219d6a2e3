/** A pause that holds whatever else is wrong with a project: its slot may be another's already. */

import { controllerOf, type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations, fieldManagers, type Project } from "@slipway/crds";
import { type DeploymentView, type PodView, type Rollout, readRollout } from "../applications/rollout.ts";
import { childOf, type ProjectStores } from "./stores.ts";

/** A Deployment as it is read here. */
export type LiveDeployment = KubernetesObject & DeploymentView;

/**
 * Stops the instances of a paused project, and whatever would start some again. It sets what an apply of the project's
 * objects sets, too, in the same name, so that one does not fight the other.
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

/** How the instances stand that a project has now, whatever its spec asks for. Without any, nothing is left to do. */
export function readInstances(deployment: DeploymentView | undefined, pods: readonly PodView[]): Rollout {
  const made = deployment?.spec?.template?.metadata?.annotations;
  const rollout = readRollout(deployment, pods, {
    settingsHash: made?.[annotations.settingsHash] ?? "",
    image: "",
  });
  return deployment ? rollout : { ...rollout, complete: true };
}
