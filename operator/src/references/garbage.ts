/** Deletes Secrets with earlier values of references and of shared variables, once nothing can start from them any more. */

import {
  deleteSeen,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { labels, type Project, type ProjectStatus } from "@slipway/crds";
import { shortestDelay } from "../projects/kind.ts";
import { isResolvedSecret } from "./resolved-secret.ts";
import { secretsInUse } from "./secrets-in-use.ts";

/** A controller that has not seen the change may create a pod or a Job from the template before, for this long. */
const GRACE_MS = 300_000;

/** How many of a project's are kept for that, the newest ones: values that change in a loop must not fill etcd. */
const MAX_UNUSED = 10;

/** Until what uses earlier values is read again, unless an event of it comes first, in milliseconds. */
const IN_USE_MS = 600_000;

/**
 * Deletes what is neither current nor used, a while after it was replaced.
 * @param status of this reconcile
 * @returns milliseconds until something may be deleted; undefined when nothing is left
 */
export async function collectResolvedSecrets(
  project: Project,
  status: ProjectStatus,
  { client, secrets, now }: { client: KubeClient; secrets: Store; now: Date },
  signal: AbortSignal,
): Promise<number | undefined> {
  const { old, replacedAt } = earlierOnes(project, status, secrets);
  const dueInMs = (secret: KubernetesObject) =>
    Math.max(replacedAt, createdAt(secret)) + GRACE_MS - now.getTime();
  if (old.length <= MAX_UNUSED && old.every((secret) => dueInMs(secret) > 0)) {
    return shortestDelay(...old.map(dueInMs));
  }
  const used = await secretsInUse(project, client, signal);
  const unused = old.filter(({ metadata }) => !used.has(metadata?.name ?? ""));
  const waits = unused.length < old.length ? [IN_USE_MS] : [];
  for (const [index, secret] of unused.entries()) {
    if (index >= MAX_UNUSED || dueInMs(secret) <= 0) {
      await deleteSeen(client, resources.secrets, secret, { signal });
    } else {
      waits.push(dueInMs(secret));
    }
  }
  return shortestDelay(...waits);
}

/** The Secrets that have been replaced, newest first, and when the last of them was. Both that and a change back begin a deployment. */
function earlierOnes(
  project: Project,
  status: ProjectStatus,
  secrets: Store,
): { old: KubernetesObject[]; replacedAt: number } {
  const { references = [], sharedVariables = [], deployments = [] } = status;
  // The project may return to it, also once none of its instances is left.
  const served = deployments.find(({ status }) => status === "succeeded")?.sharedVariables ?? [];
  const current = new Set([...references, ...sharedVariables, ...served].map(({ resolved }) => resolved));
  const isCurrent = ({ metadata }: KubernetesObject) => current.has(metadata?.name ?? "");
  const mine = resolvedOf(project, secrets);
  const old = mine.filter((secret) => !isCurrent(secret) && !secret.metadata?.deletionTimestamp);
  return {
    old: old.toSorted((a, b) => createdAt(b) - createdAt(a)),
    replacedAt: replacedAt(status, mine.filter(isCurrent)),
  };
}

/** The Secrets of a project's own with values of references or of shared variables, as last observed. */
const resolvedOf = ({ metadata: { namespace, name } }: Project, secrets: Store): KubernetesObject[] =>
  secrets
    .byIndex(labels.project, name)
    .filter((secret) => secret.metadata?.namespace === namespace && isResolvedSecret(secret));

/** When what is current last replaced something, in milliseconds. */
const replacedAt = ({ deployments = [] }: ProjectStatus, current: readonly KubernetesObject[]): number =>
  Math.max(Date.parse(deployments[0]?.startedAt ?? "") || 0, ...current.map(createdAt));

/**
 * When one of these Secrets of a project was created, or the last of them that it has was, in milliseconds: something may still be created from
 * it for a while after that.
 */
export function changedAt(project: Project, secrets: Store): number {
  return replacedAt(project.status ?? {}, resolvedOf(project, secrets));
}

const createdAt = ({ metadata }: KubernetesObject): number =>
  Date.parse(String(metadata?.creationTimestamp ?? "")) || 0;
