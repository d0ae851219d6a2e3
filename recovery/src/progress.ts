/** Whether an installation may be restored into: a new one, or one that this restore has begun with. */

import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { fieldManagers } from "@slipway/crds";
import type { Installation } from "./installation.ts";
import { projectResource } from "./objects.ts";

const CONFIG_MAP = "slipway-restore";

type ConfigMap = KubernetesObject & { data?: { backup?: string; loadedAt?: string; endedAt?: string } };

/**
 * Notes that a backup is being restored, in the ConfigMap `slipway-restore`.
 * @param rows of a ledger that was used
 * @returns whether all of it is loaded by now: the platform's processes may run since then, and nothing is loaded again
 * @throws Error when the installation has projects or such rows that are not this backup's
 */
export async function beginRestore(
  installation: Installation,
  backup: string,
  rows: () => Promise<number>,
): Promise<boolean> {
  const { client, namespace } = installation;
  const live = await client.getOrUndefined<ConfigMap>(resources.configMaps, { namespace, name: CONFIG_MAP });
  if (live?.data?.backup === backup && live.data.endedAt === undefined) {
    return live.data.loadedAt !== undefined;
  }
  const { items } = await client.list(projectResource, { limit: 1 });
  if (items.length > 0 || (await rows()) > 0) {
    throw new Error(
      "this installation is in use: it has projects, or a ledger with deployments, runs or charges; restore into a new one",
    );
  }
  await note(installation, { backup });
  return false;
}

/** Notes that all of it is loaded. */
export const noteLoaded = (installation: Installation, backup: string): Promise<void> =>
  note(installation, { backup, loadedAt: new Date().toISOString() });

/** Notes that it has ended: it is not repeated after that. */
export const endRestore = (installation: Installation, backup: string): Promise<void> =>
  note(installation, { backup, endedAt: new Date().toISOString() });

async function note({ client, namespace }: Installation, data: ConfigMap["data"]): Promise<void> {
  const object: ConfigMap = { metadata: { namespace, name: CONFIG_MAP }, data };
  await client.apply(resources.configMaps, object, { fieldManager: fieldManagers.recovery });
}
