/** Where jobs report how they ended: keys of a ConfigMap, which the operator makes metrics of, and Events about the CronJob. */

import { hostname } from "node:os";
import { type KubernetesObject, microTime, resources } from "@slipway/controller-runtime";
import { fieldManagers, PLATFORM_BACKUP, platformBackupKeys, storedPlatformBackup } from "@slipway/crds";
import type { Installation } from "../installation.ts";

type ConfigMap = KubernetesObject & { data?: Record<string, string> };
export type OutcomeKey = keyof typeof platformBackupKeys;

/** Writes the last outcome of its kind. */
export async function recordOutcome(
  { client, namespace }: Installation,
  key: OutcomeKey,
  value: object,
): Promise<void> {
  const data = { [platformBackupKeys[key]]: JSON.stringify(value) };
  const ref = { namespace, name: PLATFORM_BACKUP };
  await client.patch(resources.configMaps, ref, { data }, { fieldManager: fieldManagers.recovery });
}

/** The backup that was stored last; undefined when there is none, or it cannot be read. */
export async function lastStored({ client, namespace }: Installation) {
  const { data } = await client.get<ConfigMap>(resources.configMaps, { namespace, name: PLATFORM_BACKUP });
  const text = data?.[platformBackupKeys.stored];
  return text === undefined ? undefined : storedPlatformBackup.safeParse(JSON.parse(text)).data;
}

/** Records an Event about a CronJob of the chart. */
export async function recordEvent(
  { client, namespace }: Installation,
  cronJob: string,
  type: "Normal" | "Warning",
  reason: string,
  note: string,
): Promise<void> {
  const { metadata } = await client.get(resources.cronJobs, { namespace, name: cronJob });
  const now = new Date();
  const event = {
    metadata: { name: `${cronJob}.${now.getTime().toString(16)}`, namespace },
    eventTime: microTime(now),
    reportingController: "slipway.dev/recovery",
    reportingInstance: hostname().slice(0, 128),
    action: "Run",
    reason,
    regarding: { apiVersion: "batch/v1", kind: "CronJob", name: cronJob, namespace, uid: metadata?.uid },
    note: note.slice(0, 1_024),
    type,
  };
  await client.create(resources.events, event as KubernetesObject);
}
