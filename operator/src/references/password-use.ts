/** Whether something may still start, or runs, with a password that it got by reference. */

import type { KubeClient, Store } from "@slipway/controller-runtime";
import { labels, type Project } from "@slipway/crds";
import { BY_PASSWORD, passwordKey } from "./password-labels.ts";
import { secretsInUse } from "./secrets-in-use.ts";

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
  const secrets = stores.secrets.byIndex(BY_PASSWORD, passwordKey(namespace, metadata.name, hash));
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
