/** The operator's requests to Patroni, by the ConfigMaps in which it keeps its state. */

import { equalJson, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import { configMapNow } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, LivePod } from "../driver.ts";
import { sharedConfig } from "./config.ts";
import { configMaps } from "./names.ts";

/** Field manager of the operator's writes into Patroni's ConfigMaps: not the applier's, which would prune them. */
const FIELD_MANAGER = "slipway-database";

type Work = Pick<ClusterContext, "client" | "signal">;

/**
 * Updates the settings that all members share. Patroni has created them from its file when it
 * initialized the database; until then none exists.
 * @returns whether they are in place by now
 */
export async function ensureSharedConfig(database: Database, work: Work): Promise<boolean> {
  const name = configMaps(database).config;
  const live = await configMapNow(database, name, work);
  const text = live?.metadata?.annotations?.config;
  if (text === undefined) {
    return false;
  }
  const wanted = sharedConfig(database);
  if (!equalJson(parsed(text), wanted)) {
    const { uid, resourceVersion } = live?.metadata ?? {};
    const patch = { metadata: { uid, resourceVersion, annotations: { config: JSON.stringify(wanted) } } };
    const ref = { namespace: database.namespace, name };
    await work.client.patch(resources.configMaps, ref, patch, {
      fieldManager: FIELD_MANAGER,
      signal: work.signal,
    });
  }
  return true;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The member that has the leader's lock. */
export async function leaderOf(database: Database, work: Work): Promise<string | undefined> {
  const live = await configMapNow(database, configMaps(database).leader, work);
  return live?.metadata?.annotations?.leader;
}

/** Members that have every acknowledged write, as Patroni has published them: only these may take over. */
export async function synchronousMembers(database: Database, work: Work): Promise<string[]> {
  const live = await configMapNow(database, configMaps(database).sync, work);
  const listed = live?.metadata?.annotations?.sync_standby ?? "";
  return listed.split(",").filter((name) => name !== "");
}

/**
 * Requests a switchover, which the primary starts with its next loop, when the other member has everything. A pending request
 * is not repeated; Patroni drops one that it cannot meet.
 */
export async function requestSwitchover(
  database: Database,
  from: LivePod,
  to: LivePod,
  work: Work,
): Promise<void> {
  const name = configMaps(database).failover;
  const live = await configMapNow(database, name, work);
  const requested = { leader: from.metadata.name ?? "", member: to.metadata.name ?? "" };
  if (live?.metadata?.annotations?.leader === requested.leader) {
    return;
  }
  const object: KubernetesObject = {
    metadata: {
      name,
      namespace: database.namespace,
      labels: { [labels.project]: database.id, [labels.type]: database.type },
      annotations: requested,
    },
  };
  const options = { fieldManager: FIELD_MANAGER, signal: work.signal };
  await work.client.apply(resources.configMaps, object, options);
}
