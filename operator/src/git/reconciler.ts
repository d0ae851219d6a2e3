/** Removes hooks from Git servers once no project uses them; a connection is deleted after its last hook. */

import { ensureFinalizer, hasFinalizer, type Reconciler, removeFinalizer } from "@slipway/controller-runtime";
import { fieldManagers, finalizers, type GitConnection } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { RetryableError } from "../reconcile-errors.ts";
import { gitConnectionResource } from "../resources.ts";
import { HookRemover, type HookRemoverOptions } from "./hooks.ts";

export interface GitConnectionDependencies extends HookRemoverOptions {
  clock: Clock;
}

/** How long a server that does not remove its hooks delays a connection's deletion. Their deliveries are rejected anyway. */
export const HOOK_REMOVAL_TIMEOUT_MS = 3_600_000;

/** How long `/v1` may take to remove the hooks of a connection that it revokes. */
const API_GRACE_MS = 15_000;

/** Milliseconds left for the API to remove the hooks. Pure. */
export function apiGraceMs({ metadata, spec }: GitConnection, now: Date): number {
  if (spec.revokedAt === undefined || metadata.deletionTimestamp !== undefined) {
    return 0;
  }
  return Math.min(API_GRACE_MS, Date.parse(spec.revokedAt) + API_GRACE_MS - now.getTime());
}

export function gitConnectionReconciler(deps: GitConnectionDependencies): Reconciler {
  const { client, clock, connections } = deps;
  const remover = new HookRemover(deps);
  return async ({ namespace, name }, { signal, log }) => {
    const found = connections.get(namespace, name);
    if (!found) {
      return undefined;
    }
    const rest = apiGraceMs(found, clock.now());
    if (rest > 0) {
      return { requeueAfterMs: rest };
    }
    const options = {
      client,
      resource: gitConnectionResource,
      store: connections,
      fieldManager: fieldManagers.gitConnection,
      signal,
    };
    const hasHooks = (found.status?.hooks ?? []).length > 0;
    const connection = hasHooks ? await ensureFinalizer(found, finalizers.gitConnection, options) : found;
    const remaining = await remover.removeUnwanted(connection, signal);
    const deletedAt = connection.metadata.deletionTimestamp;
    if (remaining.hooks.length > 0) {
      const isOver =
        deletedAt !== undefined && clock.now().getTime() - Date.parse(deletedAt) > HOOK_REMOVAL_TIMEOUT_MS;
      if (deletedAt === undefined || !(isOver || remaining.isUnremovable)) {
        throw new RetryableError("HooksRemain", "hooks at the server could not be taken away", {
          cause: remaining.cause,
        });
      }
      log.warn({ hooks: remaining.hooks.length, err: remaining.cause }, "hooks are left at a Git server");
    }
    const current = connections.get(namespace, name) ?? connection;
    if (deletedAt !== undefined) {
      if (hasFinalizer(current, finalizers.gitConnection)) {
        await removeFinalizer(current, finalizers.gitConnection, options);
      }
    } else if (connection.spec.revokedAt !== undefined) {
      // Its Secret is deleted with it.
      await client.delete(
        gitConnectionResource,
        { namespace, name },
        { uid: connection.metadata.uid, signal },
      );
    }
    return undefined;
  };
}
