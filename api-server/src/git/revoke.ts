import type { GitConnection } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import type { Services } from "../services.ts";
import {
  currentConnection,
  deleteConnection,
  isBuilding,
  patchConnection,
  patchConnectionStatus,
} from "./cluster.ts";
import { revokedStatus } from "./create-connection.ts";
import { deleteCredential } from "./credentials.ts";
import { removeHooks } from "./hooks.ts";
import { isRevoked } from "./view.ts";

export interface Revocation {
  /** As it was last, revoked. */
  connection: GitConnection;
  /** Whether hooks are left at the server. */
  cleanupPending: boolean;
}

/**
 * Revokes a connection: from then on nothing uses its credential. Then its hooks are removed, and with the last of them
 * connection and credential. The operator retries what cannot be removed now; revoking again retries, too.
 * @throws Failure 409 while a build uses it, and then it stays as it is; 503
 */
export async function revoke(
  connection: GitConnection,
  services: Pick<Services, "kube" | "git" | "now">,
): Promise<Revocation> {
  const { kube, now } = services;
  let current = connection;
  if (!isRevoked(connection)) {
    if (await isBuilding(kube, connection)) {
      throw failures.gitConnectionOperationPending("a build uses it");
    }
    const { revision } = connection.spec;
    current = await patchConnection(kube, connection, {
      revokedAt: now().toISOString(),
      revision: revision + 1,
    });
  }
  const { connection: left, isClean } = await removeHooks(current, services);
  if (left === undefined) {
    return { connection: current, cleanupPending: false };
  }
  try {
    if (!isClean) {
      const recorded = await patchConnectionStatus(kube, left, revokedStatus(left, now()));
      return { connection: recorded, cleanupPending: true };
    }
    await deleteCredential(kube, left, left.spec.credentialRef.name);
    await deleteConnection(kube, left);
    return { connection: left, cleanupPending: false };
  } catch (error) {
    // It is revoked, and the operator, which removes hooks and connection, has changed it meanwhile.
    if (!(error instanceof Failure) || error.status >= 500) {
      throw error;
    }
    const { status } = (await currentConnection(kube, left)) ?? {};
    return { connection: left, cleanupPending: (status?.hooks ?? []).length > 0 };
  }
}
