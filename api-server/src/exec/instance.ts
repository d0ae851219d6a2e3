import { type KubeClient, KubeError, type ObjectRef, resources } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { APP, type Pod } from "../logs/instance-log.ts";
import type { ApiProject } from "../projects/api-project.ts";

const TIMEOUT_MS = 5_000;

/** Names of instances. */
export const INSTANCE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

interface RunningPod extends Pod {
  status?: Pod["status"] & { phase?: string };
}

/**
 * The pod of a running instance, as the cluster has it now: one with the project's label, in its organization's namespace.
 * @throws Failure 404 for an instance that is not the project's, 409 for one whose container does not run, 503 when the cluster does not answer
 */
export async function findRunningInstance(
  kube: KubeClient,
  { id, resource }: ApiProject,
  instance: string,
): Promise<ObjectRef> {
  const { namespace } = resource.metadata;
  const [pod] = await kube
    .listAll<RunningPod>(resources.pods, {
      namespace,
      labelSelector: `${labels.project}=${id}`,
      fieldSelector: `metadata.name=${instance}`,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    .catch((error: unknown) => {
      throw failures.clusterUnavailable(error);
    });
  if (pod?.metadata?.name !== instance) {
    throw failures.instanceNotFound(instance);
  }
  const status = pod.status?.containerStatuses?.find(({ name }) => name === APP);
  const isRunning = pod.status?.phase === "Running" && status?.state?.running !== undefined;
  if (!isRunning || pod.metadata.deletionTimestamp !== undefined) {
    throw failures.instanceNotRunning(instance);
  }
  return { ...(namespace === undefined ? {} : { namespace }), name: instance };
}

/** What a start that the cluster refused is answered with: the instance has ended meanwhile, or its node does not answer. */
export function startFailure(error: unknown, instance: string): Error {
  const isGone = error instanceof KubeError && error.status === 404;
  return isGone ? failures.instanceNotFound(instance) : failures.execUnavailable(error);
}
