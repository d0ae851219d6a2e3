/** The Secrets with what webhooks' deliveries are signed with. */

import {
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import {
  labels,
  organizationNamespace,
  organizationOfNamespace,
  webhookSecretKeys,
  webhookSecretName,
} from "@slipway/crds";

type Secret = KubernetesObject & { data?: Record<string, string> };

/**
 * What a webhook's deliveries are signed with at a moment, the newest first; none when the Secret does not exist.
 * @throws KubeError
 */
export async function signingSecrets(
  client: Pick<KubeClient, "getOrUndefined">,
  { organizationId, webhookId }: { organizationId: string; webhookId: string },
  now: Date,
  signal: AbortSignal,
): Promise<string[]> {
  const ref = { namespace: organizationNamespace(organizationId), name: webhookSecretName(webhookId) };
  const { data = {} } =
    (await client.getOrUndefined<Secret>(resources.secrets, ref, { signal, timeoutMs: 5_000 })) ?? {};
  const value = (key: string): string => Buffer.from(data[key] ?? "", "base64").toString("utf8");
  const { current, previous, previousUntil } = webhookSecretKeys;
  const isValid = Date.parse(value(previousUntil)) > now.getTime();
  return [value(current), ...(isValid ? [value(previous)] : [])].filter((secret) => secret !== "");
}

/** A creation writes the Secret before the webhook, and has that long for it. */
const GRACE_MS = 600_000;

/**
 * Deletes the Secrets of webhooks that do not exist: of one whose creation or deletion was cut short.
 * @throws KubeError, and whatever the ledger throws
 */
export async function deleteOrphanedSecrets(
  {
    client,
    secrets,
    existing,
  }: {
    client: Pick<KubeClient, "delete">;
    secrets: Pick<Store, "list">;
    /** Those of these ids that exist. */
    existing: (ids: readonly string[]) => Promise<Set<string>>;
  },
  now: Date,
  signal: AbortSignal,
): Promise<number> {
  const found = secrets.list().flatMap(({ metadata }) => {
    const id: unknown = metadata?.labels?.[labels.webhook];
    const name = metadata?.name ?? "";
    if (typeof id !== "string" || name !== webhookSecretName(id)) {
      return [];
    }
    const isOurs =
      organizationOfNamespace(metadata?.namespace ?? "") !== undefined &&
      now.getTime() - Date.parse(String(metadata?.creationTimestamp ?? "")) > GRACE_MS;
    return isOurs ? [{ id, namespace: metadata?.namespace, name, uid: metadata?.uid }] : [];
  });
  const known = await existing(found.map(({ id }) => id));
  const orphaned = found.filter(({ id }) => !known.has(id));
  for (const { namespace, name, uid } of orphaned) {
    await client.delete(resources.secrets, { namespace, name }, { uid, signal }).catch((error: unknown) => {
      if (!isNotFound(error)) {
        throw error;
      }
    });
  }
  return orphaned.length;
}
