import { randomBytes } from "node:crypto";
import {
  type GitConnection,
  type GitConnectionReason,
  type GitConnectionStatus,
  labels,
  MANAGED_BY,
  organizationNamespace,
} from "@slipway/crds";
import type { Capabilities } from "@slipway/git";
import { failures } from "../errors/catalog.ts";
import { newGitConnectionId } from "../ids.ts";
import { isProvisioned, readNamespace } from "../organizations/service.ts";
import type { Services } from "../services.ts";
import { createConnection, deleteConnection, listConnections, patchConnectionStatus } from "./cluster.ts";
import { createCredential, credentialName, type GitCredential } from "./credentials.ts";

/** The status of connections. Pure. */

type StatusUpdate = Pick<GitConnectionStatus, "observedGeneration" | "phase" | "conditions" | "capabilities">;

const condition = (
  type: "Ready" | "CleanedUp",
  isTrue: boolean,
  reason: GitConnectionReason,
  message: string,
  { metadata }: GitConnection,
  now: Date,
) => ({
  type,
  status: isTrue ? ("True" as const) : ("False" as const),
  observedGeneration: metadata.generation ?? 1,
  lastTransitionTime: now.toISOString(),
  reason,
  message,
});

/** Of one whose credential the server accepted just now. */
export const acceptedStatus = (
  connection: GitConnection,
  capabilities: Capabilities,
  now: Date,
): StatusUpdate => ({
  observedGeneration: connection.metadata.generation ?? 1,
  phase: "active",
  capabilities,
  conditions: [
    condition("Ready", true, "CredentialTaken", "the server took the credential", connection, now),
  ],
});

/** Of one whose credential the server refused just now. */
export const refusedStatus = (connection: GitConnection, now: Date): StatusUpdate => ({
  observedGeneration: connection.metadata.generation ?? 1,
  phase: "unavailable",
  conditions: [
    condition(
      "Ready",
      false,
      "CredentialRefused",
      "the server does not take the credential",
      connection,
      now,
    ),
  ],
});

/** Of one that is revoked, while hooks are left at its server. */
export const revokedStatus = (connection: GitConnection, now: Date): StatusUpdate => ({
  observedGeneration: connection.metadata.generation ?? 1,
  phase: "revoked",
  conditions: [
    condition("Ready", false, "Revoked", "the connection is revoked", connection, now),
    condition(
      "CleanedUp",
      false,
      "HooksRemain",
      "hooks at the server could not be taken away",
      connection,
      now,
    ),
  ],
});

/** The connections that an organization has. @throws Failure 503, also while it cannot have any */
export async function connectionsOf(
  kube: Services["kube"],
  organizationId: string,
): Promise<readonly GitConnection[]> {
  if (!isProvisioned(await readNamespace(kube, organizationId))) {
    throw failures.organizationRuntimeUnavailable();
  }
  return listConnections(kube, organizationId);
}

/**
 * An early check: of two concurrent calls, the namespace's ResourceQuota refuses the one that is too many.
 * @throws Failure 409
 */
export function assertConnectionLimit(
  existing: readonly GitConnection[],
  { catalog }: Pick<Services, "catalog">,
): void {
  const { gitConnections } = catalog.current.organizationLimits;
  if (existing.length >= gitConnections) {
    throw failures.organizationLimitReached("gitConnections", gitConnections);
  }
}

/**
 * Creates a connection with its Secret, which has a new secret of hooks besides the account.
 * @param account what the server accepted
 * @throws Failure 503; then nothing is left of it
 */
export async function createConnectionWithSecret(
  organizationId: string,
  account: Partial<Pick<GitCredential, "username" | "token">>,
  spec: Omit<GitConnection["spec"], "credentialRef" | "revision">,
  capabilities: Capabilities,
  { kube, now }: Pick<Services, "kube" | "now">,
): Promise<GitConnection> {
  const id = newGitConnectionId();
  const credential = { ...account, hookSecret: randomBytes(32).toString("hex") };
  const credentialRef = { name: credentialName(id, credential) };
  const connection = await createConnection(kube, {
    metadata: {
      name: id,
      namespace: organizationNamespace(organizationId),
      labels: { [labels.managedBy]: MANAGED_BY, [labels.organization]: organizationId },
    },
    spec: { ...spec, credentialRef, revision: 1 },
  });
  try {
    await createCredential(kube, connection, credentialRef.name, credential);
    return await patchConnectionStatus(kube, connection, acceptedStatus(connection, capabilities, now()));
  } catch (error) {
    // Its Secret, if it was created, is deleted with it.
    await deleteConnection(kube, connection).catch(() => {});
    throw error;
  }
}
