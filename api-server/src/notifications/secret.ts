import { randomBytes } from "node:crypto";
import {
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import {
  fieldManagers,
  labels,
  MANAGED_BY,
  organizationNamespace,
  webhookSecretKeys,
  webhookSecretName,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { withClusterErrors } from "../organizations/cluster-errors.ts";

/** What webhooks' deliveries are signed with: a Secret of each, which the ledger knows nothing of. */

type Secret = KubernetesObject & { data?: Record<string, string> };

const WRITE = { fieldManager: fieldManagers.api };
/** Bytes of a new secret. */
const SECRET_BYTES = 32;
/** How long the secret before a new one signs, too. */
export const OVERLAP_MS = 86_400_000;

/** A new secret, in the form of Standard Webhooks. */
export const newSecret = (): string => `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;

const refOf = (organizationId: string, webhookId: string) => ({
  namespace: organizationNamespace(organizationId),
  name: webhookSecretName(webhookId),
});

/** Creates the Secret of a webhook. @throws Failure 409, 503 */
export async function createSecret(
  kube: KubeClient,
  organizationId: string,
  webhookId: string,
  secret: string,
): Promise<void> {
  const object = {
    metadata: {
      ...refOf(organizationId, webhookId),
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organizationId,
        [labels.webhook]: webhookId,
      },
    },
    type: "Opaque",
    data: { [webhookSecretKeys.current]: encoded(secret) },
  };
  const creation = kube.create(resources.secrets, object, WRITE).catch((error: unknown) => {
    throw isAlreadyExists(error) ? failures.webhookConflict() : error;
  });
  await withClusterErrors(creation);
}

/**
 * Replaces a webhook's secret; the one before it signs, too, for a day. Where the Secret was deleted it is created.
 * @throws Failure 409 when another change is under way, 503
 */
export async function replaceSecret(
  kube: KubeClient,
  organizationId: string,
  webhookId: string,
  secret: string,
  now: Date,
): Promise<void> {
  const ref = refOf(organizationId, webhookId);
  const live = await withClusterErrors(kube.getOrUndefined<Secret>(resources.secrets, ref));
  if (live === undefined) {
    return createSecret(kube, organizationId, webhookId, secret);
  }
  const { current, previous, previousUntil } = webhookSecretKeys;
  const { uid, resourceVersion } = live.metadata ?? {};
  const until = new Date(now.getTime() + OVERLAP_MS).toISOString();
  const data = {
    [current]: encoded(secret),
    [previous]: live.data?.[current] ?? null,
    [previousUntil]: encoded(until),
  };
  await withClusterErrors(
    kube.patch(resources.secrets, ref, { metadata: { uid, resourceVersion }, data }, WRITE),
    { missing: failures.webhookConflict, conflict: failures.webhookConflict },
  );
}

/** Deletes a webhook's Secret; one that is deleted already is no failure. @throws Failure 503 */
export async function deleteSecret(
  kube: KubeClient,
  organizationId: string,
  webhookId: string,
): Promise<void> {
  const deletion = kube
    .delete(resources.secrets, refOf(organizationId, webhookId))
    .catch((error: unknown) => {
      if (!isNotFound(error)) {
        throw error;
      }
    });
  await withClusterErrors(deletion);
}

const encoded = (text: string): string => Buffer.from(text).toString("base64");
