/**
 * Secrets that were made for earlier settings of a project: deleted once no deployment that can be rolled back to needs
 * them. Only what the API makes under a name with a content hash; a user's own Secrets, certificates and logins to
 * registries are none of it.
 */

import { annotations, labels, MANAGED_BY, type Project } from "@slipway/crds";
import {
  isConflict,
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/kube";
import { projectResource } from "../resources.ts";
import { secretsOfRuns } from "./job/secrets.ts";
import { secretNames } from "./secrets.ts";
import { soonest } from "./soonest.ts";

/** The API makes a Secret before the spec names it; until then it looks like garbage. */
const YOUNG_MS = 600_000;

/** How long until it is looked again whether a run still needs a Secret, in milliseconds. */
const RUNNING_MS = 60_000;

/** Names of every Secret that the project, or a deployment that it can go back to, is made from. */
export function namesInUse(project: Project): Set<string> {
  const deployments = project.status?.deployments ?? [];
  return new Set([
    ...secretNames(project.spec),
    ...deployments.flatMap(({ settings }) => secretNames(settings)),
  ]);
}

/** A Secret that may go, and in how many milliseconds: 0 or less is now. */
export interface Garbage {
  secret: KubernetesObject;
  dueInMs: number;
}

/** The Secrets of a project that nothing needs any more. Pure. */
export function garbageOf(project: Project, secrets: readonly KubernetesObject[], now: Date): Garbage[] {
  const used = namesInUse(project);
  return secrets
    .filter((secret) => isContentSecret(secret, project) && !used.has(secret.metadata?.name ?? ""))
    .map((secret) => ({ secret, dueInMs: youngUntil(secret) - now.getTime() }));
}

function isContentSecret({ metadata }: KubernetesObject, project: Project): boolean {
  const { name, namespace } = project.metadata;
  const own = metadata?.labels ?? {};
  const hash = metadata?.name?.match(/^(.+)-(?:env|pull)-[0-9a-f]{8,64}$/)?.[1];
  return (
    hash === name &&
    metadata?.namespace === namespace &&
    own[labels.project] === name &&
    own[labels.managedBy] === MANAGED_BY &&
    metadata?.deletionTimestamp === undefined
  );
}

/** A Secret that is needed again, since its content is, is marked before the spec names it. */
function youngUntil({ metadata }: KubernetesObject): number {
  const made = Date.parse(String(metadata?.creationTimestamp ?? ""));
  const reused = Date.parse(metadata?.annotations?.[annotations.reusedAt] ?? "");
  return Math.max(made || 0, reused || 0) + YOUNG_MS;
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
    const used = live && live.metadata.uid === project.metadata.uid ? namesInUse(live) : undefined;
    const running = await secretsOfRuns(project, client, signal);
    for (const secret of due) {
      if (running.has(secret.metadata?.name ?? "")) {
        waits.push(RUNNING_MS);
      } else if (used && !used.has(secret.metadata?.name ?? "")) {
        await remove(secret, client, signal);
      }
    }
  }
  return soonest(...waits);
}

/** Not when it was marked as needed meanwhile: then its version is another one. */
async function remove({ metadata }: KubernetesObject, client: KubeClient, signal: AbortSignal) {
  const { name = "", namespace, uid, resourceVersion } = metadata ?? {};
  try {
    await client.delete(resources.secrets, { name, namespace }, { uid, resourceVersion, signal });
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) {
      throw error;
    }
  }
}
