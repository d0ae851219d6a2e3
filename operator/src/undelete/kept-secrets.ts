/** Secrets that are kept under a record. */

import { type KubernetesObject, type ObjectRef, resources } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import type { Secret } from "./record.ts";
import type { VolumeAccess } from "./volumes.ts";

const selectorOf = ({ name }: ObjectRef) => `${labels.deletedProject}=${name}`;

/** All of them, the one with the state too. */
export function listKept(record: ObjectRef, { client, signal }: VolumeAccess): Promise<Secret[]> {
  const { namespace } = record;
  return client.listAll<Secret>(resources.secrets, { namespace, labelSelector: selectorOf(record), signal });
}

/** Deletes all of them. */
export async function deleteKept(record: ObjectRef, { client, signal }: VolumeAccess): Promise<void> {
  const { namespace } = record;
  const options = { namespace, labelSelector: selectorOf(record), metadataOnly: true, signal };
  for (const { metadata } of await client.listAll<KubernetesObject>(resources.secrets, options)) {
    const { uid, name = "" } = metadata ?? {};
    await client.delete(resources.secrets, { namespace, name }, { uid, signal });
  }
}
