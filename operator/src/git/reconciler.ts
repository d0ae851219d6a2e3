/** Takes hooks away from Git servers once they are for nothing; a connection goes when its last one has gone. */

import { ensureFinalizer, hasFinalizer, type Reconciler, removeFinalizer } from "@slipway/controller-runtime";
import { fieldManagers, finalizers, type GitConnection } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { RetryableError } from "../reconcile-errors.ts";
import { gitConnectionResource } from "../resources.ts";
import { HookRemover, type HookRemoverOptions } from "./hook-remover.ts";

export interface GitConnectionDependencies extends HookRemoverOptions {
  clock: Clock;
}

/** For so long a deleted connection is held by a server that does not let go of its hooks. What they send then is refused anyway. */
export const GIVE_UP_MS = 3_600_000;

/** For so long whoever revokes a connection through `/v1` takes its hooks away itself. */
const API_MS = 15_000;

/** Milliseconds that are left of the API's turn. Pure. */
export function turnOfApi({ metadata, spec }: GitConnection, now: Date): number {
  if (spec.revokedAt === undefined || metadata.deletionTimestamp !== undefined) {
    return 0;
  }
  return Math.min(API_MS, Date.parse(spec.revokedAt) + API_MS - now.getTime());
}

export function gitConnectionReconciler(deps: GitConnectionDependencies): Reconciler {
  const { client, clock, connections } = deps;
  const remover = new HookRemover(deps);
  return async ({ namespace, name }, { signal, log }) => {
    const found = connections.get(namespace, name);
    if (!found) {
      return undefined;
    }
    const rest = turnOfApi(found, clock.now());
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
    const left = await remover.removeUnwanted(connection, signal);
    const deletedAt = connection.metadata.deletionTimestamp;
    if (left.hooks.length > 0) {
      const isOver = deletedAt !== undefined && clock.now().getTime() - Date.parse(deletedAt) > GIVE_UP_MS;
      if (deletedAt === undefined || !(isOver || left.isHopeless)) {
        throw new RetryableError("HooksRemain", "hooks at the server could not be taken away", {
          cause: left.cause,
        });
      }
      log.warn({ hooks: left.hooks.length, err: left.cause }, "hooks are left at a Git server");
    }
    const current = connections.get(namespace, name) ?? connection;
    if (deletedAt !== undefined) {
      if (hasFinalizer(current, finalizers.gitConnection)) {
        await removeFinalizer(current, finalizers.gitConnection, options);
      }
    } else if (connection.spec.revokedAt !== undefined) {
      // Its Secret goes with it.
      await client.delete(
        gitConnectionResource,
        { namespace, name },
        { uid: connection.metadata.uid, signal },
      );
    }
    return undefined;
  };
}
