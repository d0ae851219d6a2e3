/** Deletes Secrets with earlier values of references, once no instance can start from them any more. */

import {
  isConflict,
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { labels, type Project, type ProjectStatus } from "@slipway/crds";
import { secretsOfRuns } from "../jobs/deletion.ts";
import { liveChildren } from "../projects/deletion.ts";
import { isResolvedSecret } from "./resolved-secret.ts";

/** Until instances are looked at again that still have earlier values, in milliseconds. */
const IN_USE_MS = 60_000;

interface PodSecrets extends KubernetesObject {
  spec?: { containers?: readonly { envFrom?: readonly { secretRef?: { name?: string } }[] }[] };
}

/**
 * Deletes what is neither current nor used. While the newest deployment has not succeeded the one before it may start instances.
 * @param status of this reconcile
 * @returns milliseconds until something may be deleted; undefined when nothing is left
 */
export async function collectResolvedSecrets(
  project: Project,
  { references = [], deployments: [newest] = [] }: ProjectStatus,
  { client, secrets }: { client: KubeClient; secrets: Store },
  signal: AbortSignal,
): Promise<number | undefined> {
  const { namespace, name: id } = project.metadata;
  const current = new Set(references.map(({ resolved }) => resolved));
  const old = secrets
    .byIndex(labels.project, id)
    .filter(
      (secret) =>
        secret.metadata?.namespace === namespace &&
        !secret.metadata?.deletionTimestamp &&
        isResolvedSecret(secret) &&
        !current.has(secret.metadata?.name ?? ""),
    );
  if (old.length === 0) {
    return undefined;
  }
  // The end of the deployment reconciles the project.
  if (newest !== undefined && newest.status !== "succeeded") {
    return undefined;
  }
  const used = await secretsOfRuns(project, client, signal);
  for (const pod of (await liveChildren(resources.pods, project, client, signal)) as PodSecrets[]) {
    for (const { secretRef } of pod.spec?.containers?.flatMap(({ envFrom = [] }) => envFrom) ?? []) {
      used.add(secretRef?.name ?? "");
    }
  }
  const unused = old.filter(({ metadata }) => !used.has(metadata?.name ?? ""));
  for (const { metadata } of unused) {
    const { name = "", uid } = metadata ?? {};
    try {
      await client.delete(resources.secrets, { namespace, name }, { uid, signal });
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) {
        throw error;
      }
    }
  }
  return unused.length < old.length ? IN_USE_MS : undefined;
}
