/** The platform's own processes: none of them runs while its state is replaced. */

import { setTimeout as sleep } from "node:timers/promises";
import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";

const DEPLOYMENTS = ["slipway-operator", "slipway-api-server", "slipway-admin"];
/** Of a Deployment that is stopped: how many replicas it is to have again. */
const REPLICAS = "slipway.dev/replicas-before-restore";
const POLL_MS = 500;
const STOP_MS = 180_000;
const FIELD_MANAGER = "slipway-recovery";

type Deployment = KubernetesObject & {
  spec?: { replicas?: number };
  status?: { replicas?: number; readyReplicas?: number };
};

/** Stops them, and waits until none is left. May be repeated. @throws Error when one has not ended in three minutes */
export async function stopProcesses(
  client: KubeClient,
  namespace: string,
  signal?: AbortSignal,
): Promise<void> {
  for (const deployment of await deploymentsOf(client, namespace, signal)) {
    const replicas = deployment.metadata?.annotations?.[REPLICAS] ?? `${deployment.spec?.replicas ?? 1}`;
    await scale(client, deployment, 0, replicas, signal);
  }
  await until(client, namespace, ({ status }) => (status?.replicas ?? 0) === 0, signal);
}

/** Starts those that were stopped, as many as before, and waits until they are ready. */
export async function startProcesses(
  client: KubeClient,
  namespace: string,
  signal?: AbortSignal,
): Promise<void> {
  for (const deployment of await deploymentsOf(client, namespace, signal)) {
    const replicas = deployment.metadata?.annotations?.[REPLICAS];
    if (replicas !== undefined) {
      await scale(client, deployment, Number(replicas), null, signal);
    }
  }
  const isReady = ({ spec, status }: Deployment) => (status?.readyReplicas ?? 0) >= (spec?.replicas ?? 1);
  await until(client, namespace, isReady, signal);
}

async function deploymentsOf(
  client: KubeClient,
  namespace: string,
  signal?: AbortSignal,
): Promise<Deployment[]> {
  const found = await Promise.all(
    DEPLOYMENTS.map((name) =>
      client.getOrUndefined<Deployment>(resources.deployments, { namespace, name }, { signal }),
    ),
  );
  return found.filter((deployment) => deployment !== undefined);
}

async function scale(
  client: KubeClient,
  { metadata }: Deployment,
  replicas: number,
  before: string | null,
  signal?: AbortSignal,
): Promise<void> {
  const ref = { namespace: metadata?.namespace, name: metadata?.name ?? "" };
  const patch = { metadata: { annotations: { [REPLICAS]: before } }, spec: { replicas } };
  await client.patch(resources.deployments, ref, patch, { fieldManager: FIELD_MANAGER, signal });
}

async function until(
  client: KubeClient,
  namespace: string,
  is: (deployment: Deployment) => boolean,
  signal?: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + STOP_MS;
  for (;;) {
    const waiting = (await deploymentsOf(client, namespace, signal)).filter((deployment) => !is(deployment));
    if (waiting.length === 0) {
      return;
    }
    if (performance.now() > deadline) {
      const names = waiting.map(({ metadata }) => metadata?.name).join(", ");
      throw new Error(`${names}: not in three minutes; see kubectl describe deployment -n ${namespace}`);
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}
