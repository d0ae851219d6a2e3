import type { GitConnection } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import type { Services } from "../services.ts";
import { currentConnection, patchConnectionStatus, recordHook } from "./cluster.ts";
import { accountOf, openConnection } from "./connect.ts";
import { readCredential } from "./credentials.ts";
import { connectionFailure } from "./servers.ts";

/** Where a connection's deliveries arrive, below the address under which Git servers reach the API. */
export const hookUrl = (base: string, connectionId: string): string => `${base}/v1/git/hooks/${connectionId}`;

/** A repository whose events are delivered to us. */
export interface HookedRepository {
  /** The server's own id. */
  id: string;
  /** Of GitHub, whose projects name it so. */
  path?: string | undefined;
}

/**
 * Ensures that the repository at the server has a hook for the connection. It is recorded before it is created, so that a call that
 * revokes the connection knows every hook that may exist. The operator removes it once no project needs it.
 * @throws Failure 404, 409, 503; for a credential that may not create hooks, GIT_CONNECTION_UNAVAILABLE: refs are polled then
 */
export async function ensureHook(
  connection: GitConnection,
  { id, path }: HookedRepository,
  base: string,
  services: Pick<Services, "kube" | "git">,
): Promise<GitConnection> {
  const url = hookUrl(base, connection.metadata.name);
  const provider = await openConnection(connection, services);
  const { hookSecret } = await readCredential(services.kube, connection);
  if (hookSecret === "") {
    throw failures.gitConnectionUnavailable("the connection's Secret has no hookSecret");
  }
  const hook = { repositoryId: id, url, ...(path === undefined ? {} : { path }) };
  const noted = await recordHook(services.kube, connection, hook);
  try {
    await provider.ensureHook(id, { url, secret: hookSecret });
  } catch (error) {
    throw connectionFailure(error);
  }
  return noted;
}

/**
 * Removes the connection's webhooks from its server. Those that cannot be removed now stay recorded, and the operator retries.
 * @returns the connection as it is then, undefined when the operator has deleted it already; and whether no hook is left
 */
export async function removeHooks(
  connection: GitConnection,
  { kube, git }: Pick<Services, "kube" | "git">,
): Promise<{ connection: GitConnection | undefined; isClean: boolean }> {
  const hooks = connection.status?.hooks ?? [];
  if (hooks.length === 0) {
    return { connection, isClean: true };
  }
  const left: typeof hooks = [];
  try {
    const provider = git.open(accountOf(connection, await readCredential(kube, connection)));
    for (const hook of hooks) {
      await provider.removeHooks(hook.repositoryId, hook.url).catch(() => left.push(hook));
    }
  } catch {
    // Without a credential no hook can be removed.
    left.push(...hooks);
  }
  return recordHooks(connection, left, kube);
}

async function recordHooks(
  connection: GitConnection,
  left: NonNullable<GitConnection["status"]>["hooks"] & object,
  kube: Services["kube"],
): Promise<{ connection: GitConnection | undefined; isClean: boolean }> {
  try {
    const written = await patchConnectionStatus(kube, connection, { hooks: left });
    return { connection: written, isClean: left.length === 0 };
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) {
      throw error;
    }
    // The operator removes them, too.
    const now = await currentConnection(kube, connection);
    return { connection: now, isClean: (now?.status?.hooks ?? []).length === 0 };
  }
}
