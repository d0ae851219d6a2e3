/**
 * Garbage collection of Secrets of earlier settings of a project: they are deleted once no deployment that can be rolled
 * back to needs them. Only Secrets that the API creates under a name with a content hash are collected; a user's own
 * Secrets, certificates and logins to registries are not.
 */

import {
  deleteSeen,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { annotations, labels, type Project } from "@slipway/crds";
import { secretsOfRuns } from "../jobs/deletion.ts";
import { projectResource } from "../resources.ts";
import { shortestDelay } from "./kind.ts";
import { contentOf, recordedBytes, secretNames } from "./secrets.ts";

/** The API creates a Secret before the spec names it; until then it seems garbage. */
const YOUNG_MS = 600_000;

/** Bytes of variables that a project keeps for rollbacks, in addition to those of its spec and of what serves. */
export const KEPT_BYTES = 4 * 2 ** 20;
/** What is over that has a call's time to be named by the spec. */
const OVER_BUDGET_MS = 90_000;

/** Poll interval while a run may still need a Secret, in milliseconds. */
const RUNNING_MS = 60_000;

/** Names of the Secrets that the spec names, and of those that the serving version uses. */
function namesRequired({ spec, status }: Project): Set<string> {
  const serving = status?.deployments?.find((deployment) => deployment.status === "succeeded");
  return new Set([...secretNames(spec), ...(serving ? secretNames(serving.settings) : [])]);
}

/** Names of the Secrets of deployments that it can go back to, those of the newest first. */
const namesForRollback = ({ status }: Project): string[] =>
  (status?.deployments ?? []).flatMap(({ settings }) => secretNames(settings));

/** A Secret to delete, and in how many milliseconds: 0 or less is now. */
export interface Garbage {
  secret: KubernetesObject;
  dueInMs: number;
}

/**
 * The Secrets of a project that nothing needs any more, and those of deployments to go back to that are over its budget of bytes: the
 * oldest deployments lose theirs first. Pure.
 */
export function garbageOf(project: Project, secrets: readonly KubernetesObject[], now: Date): Garbage[] {
  const required = namesRequired(project);
  const rollback = namesForRollback(project);
  // What no deployment names comes last: it is the first that is over the budget.
  const rank = ({ metadata }: KubernetesObject) => {
    const at = rollback.indexOf(metadata?.name ?? "");
    return at < 0 ? rollback.length : at;
  };
  const candidates = secrets
    .filter((secret) => isContentSecret(secret, project) && !required.has(secret.metadata?.name ?? ""))
    .toSorted((a, b) => rank(a) - rank(b) || neededAt(b) - neededAt(a));
  let bytes = 0;
  return candidates.flatMap((secret) => {
    // Bytes that are not recorded yet are recorded within a minute, by `quotas/usage.ts`.
    bytes += recordedBytes(secret) ?? 0;
    const isOver = bytes > KEPT_BYTES;
    if (!isOver && rank(secret) < rollback.length) {
      return [];
    }
    const graceMs = isOver ? OVER_BUDGET_MS : YOUNG_MS;
    return [{ secret, dueInMs: neededAt(secret) + graceMs - now.getTime() }];
  });
}

function isContentSecret(secret: KubernetesObject, { metadata: { name, namespace } }: Project): boolean {
  const { metadata } = secret;
  return (
    metadata?.namespace === namespace &&
    metadata?.labels?.[labels.project] === name &&
    contentOf(secret) !== undefined
  );
}

/** When it was created, or marked because its content is needed again, which is done before the spec names it. */
function neededAt({ metadata }: KubernetesObject): number {
  const created = Date.parse(String(metadata?.creationTimestamp ?? ""));
  const reused = Date.parse(metadata?.annotations?.[annotations.reusedAt] ?? "");
  return Math.max(created || 0, reused || 0);
}

/**
 * Deletes what is due.
 * @returns milliseconds until something else is; undefined when nothing is left
 */
export async function collectGarbage(
  project: Project,
  { client, secrets, now }: { client: KubeClient; secrets: Store; now: Date },
  signal: AbortSignal,
): Promise<number | undefined> {
  const { namespace, name } = project.metadata;
  const mine = secrets
    .byIndex(labels.project, name)
    .filter(({ metadata }) => metadata?.namespace === namespace);
  const garbage = garbageOf(project, mine, now);
  const due = garbage.filter(({ dueInMs }) => dueInMs <= 0).map(({ secret }) => secret);
  const waits = garbage.filter(({ dueInMs }) => dueInMs > 0).map(({ dueInMs }) => dueInMs);
  if (due.length > 0) {
    const live = await client.getOrUndefined<Project>(projectResource, { namespace, name }, { signal });
    // By the live project it must be garbage, too.
    const still = live && live.metadata.uid === project.metadata.uid ? garbageOf(live, mine, now) : [];
    const running = await secretsOfRuns(project, client, signal);
    for (const secret of due) {
      if (running.has(secret.metadata?.name ?? "")) {
        waits.push(RUNNING_MS);
      } else if (still.some((one) => one.secret === secret && one.dueInMs <= 0)) {
        // Not when it was marked as needed meanwhile: then its version is another one.
        const { resourceVersion } = secret.metadata ?? {};
        await deleteSeen(client, resources.secrets, secret, { resourceVersion, signal });
      }
    }
  }
  return shortestDelay(...waits);
}
