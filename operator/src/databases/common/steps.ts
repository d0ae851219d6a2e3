/** Actions on a database's pods. */

import { type ExecResult, resources } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import type { Database } from "../database.ts";
import type { ClusterContext, LivePod } from "../driver.ts";
import { type Role, roles } from "./metadata.ts";
import { CONTAINER } from "./pod.ts";

/** Timeout of a command in a container, in milliseconds. */
const EXEC_MS = 10_000;

/**
 * Runs a command in the engine's container.
 * @param stdin what it reads; secrets belong here and nowhere else
 * @throws KubeError when it cannot be run
 */
export function execIn(
  pod: LivePod,
  command: readonly string[],
  { client, signal }: Pick<ClusterContext, "client" | "signal">,
  stdin?: string,
): Promise<ExecResult> {
  const { namespace, name = "" } = pod.metadata;
  const options = { container: CONTAINER, command, stdin, signal, timeoutMs: EXEC_MS };
  return client.podExec({ namespace, name }, options);
}

/** Deletes this very pod; the StatefulSet replaces it. */
export async function deletePod(
  pod: LivePod,
  { client, signal }: Pick<ClusterContext, "client" | "signal">,
): Promise<void> {
  const { namespace, name = "", uid } = pod.metadata;
  await client.delete(resources.pods, { namespace, name }, { uid, signal });
}

/** Field manager of the role labels. */
const FIELD_MANAGER = "slipway-database";

/** The label of a pod that is to change. */
export interface Relabelling {
  pod: LivePod;
  role: Role;
}

/**
 * Sets role labels, by which Services select pods, in this order.
 * @param promote called before a pod becomes the primary
 */
export async function labelPods(
  changes: readonly Relabelling[],
  { client, signal }: Pick<ClusterContext, "client" | "signal">,
  promote?: (pod: LivePod) => Promise<void>,
): Promise<void> {
  for (const { pod, role } of changes) {
    if (role === roles.primary) {
      await promote?.(pod);
    }
    const { namespace, name = "", uid } = pod.metadata;
    const patch = { metadata: { uid, labels: { [labels.role]: role } } };
    await client.patch(resources.pods, { namespace, name }, patch, { fieldManager: FIELD_MANAGER, signal });
  }
}

/** Queries pods concurrently. @returns their states, without those that do not answer */
export async function queryPods<State>(
  pods: readonly LivePod[],
  query: (pod: LivePod) => Promise<State | undefined>,
): Promise<ReadonlyMap<LivePod, State>> {
  const states = await Promise.all(pods.map(async (pod) => ({ pod, state: await query(pod) })));
  return new Map(states.flatMap(({ pod, state }) => (state === undefined ? [] : [[pod, state] as const])));
}

/** A database's ConfigMap as it is now, with the annotations that Patroni and others keep their state in. */
export function configMapNow(
  { namespace }: Database,
  name: string,
  { client, signal }: Pick<ClusterContext, "client" | "signal">,
) {
  return client.getOrUndefined(resources.configMaps, { namespace, name }, { signal });
}
