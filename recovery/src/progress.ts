/** Whether an installation may be restored into: a new one, or one that this restore has begun with. */

import { customResource, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { GROUP, plurals, VERSION } from "@slipway/crds";
import type { LedgerPlace } from "./ledger.ts";

const CONFIG_MAP = "slipway-restore";
const FIELD_MANAGER = "slipway-recovery";

type ConfigMap = KubernetesObject & { data?: { backup?: string; loadedAt?: string; endedAt?: string } };

const projects = customResource(GROUP, VERSION, plurals.Project, "Project");

/**
 * Notes that a backup is being restored, in the ConfigMap `slipway-restore`.
 * @param rows of a ledger that was used
 * @returns whether all of it is loaded by now: the platform's processes may run since then, and nothing is loaded again
 * @throws Error when the installation has projects or such rows that are not this backup's
 */
export async function beginRestore(
  place: LedgerPlace,
  backup: string,
  rows: () => Promise<number>,
): Promise<boolean> {
  const { client, namespace, signal } = place;
  const live = await client.getOrUndefined<ConfigMap>(
    resources.configMaps,
    { namespace, name: CONFIG_MAP },
    { signal },
  );
  if (live?.data?.backup === backup && live.data.endedAt === undefined) {
    return live.data.loadedAt !== undefined;
  }
  const { items } = await client.list(projects, { limit: 1, signal });
  if (items.length > 0 || (await rows()) > 0) {
    throw new Error(
      "this installation is in use: it has projects, or a ledger with deployments, runs or charges; restore into a new one",
    );
  }
  await note(place, { backup });
  return false;
}

/** Notes that all of it is loaded. */
export const noteLoaded = (place: LedgerPlace, backup: string): Promise<void> =>
  note(place, { backup, loadedAt: new Date().toISOString() });

/** Notes that it has ended: it is not repeated after that. */
export const endRestore = (place: LedgerPlace, backup: string): Promise<void> =>
  note(place, { backup, endedAt: new Date().toISOString() });

async function note({ client, namespace, signal }: LedgerPlace, data: ConfigMap["data"]): Promise<void> {
  const object: ConfigMap = { metadata: { namespace, name: CONFIG_MAP }, data };
  await client.apply(resources.configMaps, object, { fieldManager: FIELD_MANAGER, signal });
}
