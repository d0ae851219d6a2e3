/** Whether something may still start, or runs, with a password that it got by reference. */

import type { KubeClient, KubernetesObject, Store } from "@slipway/controller-runtime";
import { labels, PASSWORD_LABEL_PREFIX, type Project, passwordLabel } from "@slipway/crds";
import { secretsInUse } from "./secrets-in-use.ts";

/** Index of Secrets by the passwords of databases among their values, as `namespace/database/hash`. */
export const BY_PASSWORD = "password";

/** Keys of a Secret in that index. */
export function passwordsOf({ metadata }: KubernetesObject): string[] {
  return Object.entries(metadata?.labels ?? {})
    .filter(([key]) => key.startsWith(PASSWORD_LABEL_PREFIX))
    .map(([key, hash]) => keyOf(metadata?.namespace, key.slice(PASSWORD_LABEL_PREFIX.length), hash));
}

/** Labels for a Secret with these passwords. @param hashes by id of the database */
export function passwordLabels(hashes: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries([...hashes].map(([id, hash]) => [passwordLabel(id), hash]));
}

const keyOf = (namespace: string | undefined, id: string, hash: string): string =>
  `${namespace}/${id}/${hash}`;

export interface PasswordUseDependencies {
  client: KubeClient;
  stores: { projects: Store<Project>; secrets: Store };
}

/**
 * Whether an instance, run or pre-deploy command of any project has a password of a database among its variables, or may be started with it.
 * Reads live, one project after the other, and no further than the first that does.
 * @param hash keyed hash of the password
 * @throws KubeError
 */
export async function isPasswordUsed(
  { metadata }: Project,
  hash: string,
  { client, stores }: PasswordUseDependencies,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = "" } = metadata;
  const secrets = stores.secrets.byIndex(BY_PASSWORD, keyOf(namespace, metadata.name, hash));
  const byProject = Map.groupBy(secrets, (secret) => secret.metadata?.labels?.[labels.project] ?? "");
  for (const [id, own] of byProject) {
    const project = stores.projects.get(namespace, id);
    if (!project) {
      continue;
    }
    const used = await secretsInUse(project, client, signal);
    if (own.some((secret) => used.has(secret.metadata?.name ?? ""))) {
      return true;
    }
  }
  return false;
}
