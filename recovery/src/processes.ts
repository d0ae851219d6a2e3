/** The platform's own processes: none of them runs while its state is replaced. */

import { setTimeout as sleep } from "node:timers/promises";
import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations, fieldManagers } from "@slipway/crds";
import type { Installation } from "./installation.ts";

const DEPLOYMENTS = ["slipway-operator", "slipway-api-server", "slipway-admin"];
const POLL_MS = 500;
const STOP_MS = 180_000;

type Deployment = KubernetesObject & {
  metadata?: { generation?: number };
  spec?: { replicas?: number };
  status?: { observedGeneration?: number; readyReplicas?: number };
};

/** Stops them, and waits until none is left. May be repeated. @throws Error when one has not ended in three minutes */
export async function stopProcesses(installation: Installation): Promise<void> {
  const { client, namespace } = installation;
  for (const deployment of await deploymentsOf(installation)) {
    const replicas =
      deployment.metadata?.annotations?.[annotations.replicasBeforeRestore] ??
      `${deployment.spec?.replicas ?? 1}`;
    await scale(client, deployment, 0, replicas);
  }
  const labelSelector = `app.kubernetes.io/name in (${DEPLOYMENTS.join(",")})`;
  await until("pods of the platform have not ended", namespace, async () => {
    // Those that are being deleted are pods still.
    const { items } = await client.list(resources.pods, { namespace, labelSelector, limit: 1 });
    return items.length === 0;
  });
}

/** Starts those that were stopped, as many as before, and waits until they are ready. */
export async function startProcesses(installation: Installation): Promise<void> {
  const { client, namespace } = installation;
  for (const deployment of await deploymentsOf(installation)) {
    const replicas = deployment.metadata?.annotations?.[annotations.replicasBeforeRestore];
    if (replicas !== undefined) {
      await scale(client, deployment, Number(replicas), null);
    }
  }
  await until("the platform is not ready", namespace, async () => {
    const deployments = await deploymentsOf(installation);
    return deployments.every(
      ({ metadata, spec, status }) =>
        (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0) &&
        (status?.readyReplicas ?? 0) >= (spec?.replicas ?? 1),
    );
  });
}

async function deploymentsOf({ client, namespace }: Installation): Promise<Deployment[]> {
  const found = await Promise.all(
    DEPLOYMENTS.map((name) => client.getOrUndefined<Deployment>(resources.deployments, { namespace, name })),
  );
  return found.filter((deployment) => deployment !== undefined);
}

async function scale(
  client: KubeClient,
  { metadata }: Deployment,
  replicas: number,
  before: string | null,
): Promise<void> {
  const ref = { namespace: metadata?.namespace, name: metadata?.name ?? "" };
  const patch = {
    metadata: { annotations: { [annotations.replicasBeforeRestore]: before } },
    spec: { replicas },
  };
  await client.patch(resources.deployments, ref, patch, { fieldManager: fieldManagers.recovery });
}

async function until(failure: string, namespace: string, is: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + STOP_MS;
  while (!(await is())) {
    if (performance.now() > deadline) {
      throw new Error(`${failure} within three minutes; see kubectl get pods -n ${namespace}`);
    }
    await sleep(POLL_MS);
  }
}
