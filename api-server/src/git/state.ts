import type { GitConnection, GitConnectionReason, GitConnectionStatus } from "@slipway/crds";
import type { Capabilities } from "@slipway/git";

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

/** Of one whose credential was taken just now. */
export const takenStatus = (
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
