/** What the controllers of a real cluster do for a Deployment, for tests on an apiserver that has none. */

import {
  type KubeClient,
  type KubernetesObject,
  type ObjectRef,
  resources,
} from "@slipway/controller-runtime";
import { serveDeployment } from "./harness.ts";

interface Template {
  metadata: { labels: Record<string, string>; annotations?: Record<string, string> };
  spec: object;
}

/** The status of the application's container, and of its pod. */
export interface PodState {
  container: object;
  conditions?: readonly object[];
}

/** An instance that serves and runs the image with this digest. */
export const serving = (image: string, digest: string): PodState => ({
  container: {
    ready: true,
    started: true,
    imageID: `${image.replace(/[:@][^/]*$/, "")}@${digest}`,
    state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
  },
});

/** Takes the place of a project's pods by one of the Deployment's template as it is now, in this state. */
export async function makePod(client: KubeClient, ref: ObjectRef, state: PodState): Promise<void> {
  await removePods(client, ref);
  const live = await client.get<KubernetesObject & { spec: { template: Template } }>(
    resources.deployments,
    ref,
  );
  const { metadata, spec } = live.spec.template;
  const name = `${ref.name}-pod`;
  await client.create<KubernetesObject>(resources.pods, {
    metadata: { ...metadata, name, namespace: ref.namespace },
    spec,
  } as KubernetesObject);
  const container = {
    name: "app",
    image: "app",
    restartCount: 0,
    ready: false,
    imageID: "",
    ...state.container,
  };
  const status = { phase: "Running", conditions: state.conditions ?? [], containerStatuses: [container] };
  await client.patch(
    resources.pods,
    { namespace: ref.namespace, name },
    { status },
    { subresource: "status" },
  );
}

/** Every instance of the Deployment's current template serves, and one pod reports its image. */
export async function deploy(
  client: KubeClient,
  ref: ObjectRef,
  image: string,
  digest: string,
): Promise<void> {
  await makePod(client, ref, serving(image, digest));
  await serveDeployment(client, ref);
}

/** Nobody here ends pods, so a project could never be deleted. */
export async function removePods(client: KubeClient, { namespace, name }: ObjectRef): Promise<void> {
  const labelSelector = `slipway.dev/project=${name}`;
  const pods = await client.listAll<KubernetesObject>(resources.pods, { namespace, labelSelector });
  for (const { metadata } of pods) {
    await client.delete(resources.pods, { namespace, name: metadata?.name ?? "" }, { gracePeriodSeconds: 0 });
  }
}
