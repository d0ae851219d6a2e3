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
  { metadata: { namespace, name: id } }: Project,
  { references = [], sharedVariables = [], deployments = [] }: ProjectStatus,
  secrets: Store,
): { old: KubernetesObject[]; replacedAt: number } {
  const [newest] = deployments;
  // The project may return to it, also once none of its instances is left.
  const served = deployments.find(({ status }) => status === "succeeded")?.sharedVariables ?? [];
  const current = new Set([...references, ...sharedVariables, ...served].map(({ resolved }) => resolved));
  const isCurrent = ({ metadata }: KubernetesObject) => current.has(metadata?.name ?? "");
  const mine = secrets
    .byIndex(labels.project, id)
    .filter((secret) => secret.metadata?.namespace === namespace && isResolvedSecret(secret));
  const old = mine.filter((secret) => !isCurrent(secret) && !secret.metadata?.deletionTimestamp);
  const startedAt = Date.parse(newest?.startedAt ?? "") || 0;
  return {
    old: old.toSorted((a, b) => createdAt(b) - createdAt(a)),
    replacedAt: Math.max(startedAt, ...mine.filter(isCurrent).map(createdAt)),
  };
}

const createdAt = ({ metadata }: KubernetesObject): number =>
  Date.parse(String(metadata?.creationTimestamp ?? "")) || 0;
