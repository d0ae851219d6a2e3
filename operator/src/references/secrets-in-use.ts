/** The Secrets that a project's variables may still be read from. */

import {
  isInTerminalPhase,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import { labels, type Project } from "@slipway/crds";
import { secretsOfRuns, secretsOfUnfinished } from "../jobs/deletion.ts";
import { liveChildren } from "../projects/deletion.ts";

interface PodSpec {
  containers?: readonly { envFrom?: readonly { secretRef?: { name?: string } }[] }[];
}

interface Template {
  template?: { spec?: PodSpec };
}

/** What pods are created from, or a pod itself. */
interface Starter extends KubernetesObject {
  spec?: PodSpec & Template & { replicas?: number; jobTemplate?: { spec?: Template } };
  status?: { phase?: string };
}

/**
 * Names of the Secrets from which something of a project's can start, read live: what the next instances or runs are created from, also
 * while there are none; the versions before that still have instances; and what has begun.
 * @throws KubeError
 */
export async function secretsInUse(
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Set<string>> {
  const { namespace, name } = project.metadata;
  const isJob = project.spec.type === "job";
  const list = async (resource: Resource): Promise<Starter[]> =>
    liveChildren(resource, project, client, signal);
  // Templates first: what is created from one after that is among what is read then.
  const live = await client.getOrUndefined<Starter>(
    isJob ? resources.cronJobs : resources.deployments,
    { namespace, name },
    { signal },
  );
  const replicaSets = isJob ? [] : await list(resources.replicaSets);
  return new Set([
    ...[live ?? {}, ...replicaSets.filter(({ spec }) => spec?.replicas !== 0)].flatMap(namesOf),
    ...(await secretsOfStarted(project, client, signal)),
  ]);
}

/**
 * Names of the Secrets that what has begun of a project, and has not ended, was started from, read live: its instances, runs and pre-deploy
 * command.
 * @throws KubeError
 */
export async function secretsOfStarted(
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Set<string>> {
  const { namespace, name } = project.metadata;
  const labelSelector = `${labels.preDeploy}=${name}`;
  const preDeployJobs = await client.listAll<KubernetesObject>(resources.jobs, {
    namespace,
    labelSelector,
    signal,
  });
  const pods: Starter[] = await liveChildren(resources.pods, project, client, signal);
  return new Set([
    ...pods.filter((pod) => !isInTerminalPhase(pod)).flatMap(namesOf),
    ...secretsOfUnfinished(preDeployJobs),
    ...(await secretsOfRuns(project, client, signal)),
  ]);
}

function namesOf({ spec }: Starter): string[] {
  const { containers = [] } = spec?.jobTemplate?.spec?.template?.spec ?? spec?.template?.spec ?? spec ?? {};
  return containers.flatMap(({ envFrom = [] }) => envFrom.flatMap(({ secretRef }) => secretRef?.name ?? []));
}
