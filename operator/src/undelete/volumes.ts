/** PersistentVolumes of deleted projects: retained, deleted in the end, or bound again. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations, type DeletedProjectSpec, fieldManagers } from "@slipway/crds";
import type { Claim } from "./record.ts";

export type RetainedVolume = DeletedProjectSpec["volumes"][number];

interface PersistentVolume extends KubernetesObject {
  spec?: {
    persistentVolumeReclaimPolicy?: string;
    claimRef?: { namespace?: string; name?: string; uid?: string };
    capacity?: { storage?: string };
  };
}

/** The apiserver, and until when. */
export interface VolumeAccess {
  client: KubeClient;
  signal: AbortSignal;
}

/**
 * Retains the volume of a bound claim for a record. One whose policy is `Retain` by itself is left as it is.
 * @returns it; undefined where nothing is bound
 * @throws KubeError 409 when the volume changed meanwhile
 */
export async function retainVolume(
  claim: Claim,
  record: string,
  access: VolumeAccess,
): Promise<RetainedVolume | undefined> {
  const { name = "", uid = "" } = claim.metadata ?? {};
  const volume = await readVolume(claim.spec?.volumeName, access);
  if (volume === undefined || volume.spec?.claimRef?.uid !== uid) {
    return undefined;
  }
  const { persistentVolumeReclaimPolicy: policy, capacity } = volume.spec;
  const holder = holderOf(volume);
  if (policy === "Delete" || (policy === "Retain" && holder !== undefined && holder !== record)) {
    await patchVolume(volume, { record, policy: "Retain" }, access);
  }
  const volumeName = volume.metadata?.name ?? "";
  return { claimName: name, claimUid: uid, volumeName, capacity: capacity?.storage ?? "0" };
}

/**
 * Ends the retention. A volume that no claim is bound to is deleted by its provisioner then, with all that is in it; one that is
 * bound is deleted with its claim again. Volumes that are retained for another record, or by themselves, stay as they are.
 */
export async function releaseVolume(
  volumeName: string | undefined,
  record: string,
  access: VolumeAccess,
): Promise<void> {
  const volume = await readVolume(volumeName, access);
  if (volume !== undefined && holderOf(volume) === record) {
    await patchVolume(volume, { record: null, policy: "Delete" }, access);
  }
}

/** Whether a retained volume can be bound again: it exists, and has not been given to others. */
export async function canBind(
  { volumeName, claimUid }: RetainedVolume,
  record: string,
  access: VolumeAccess,
): Promise<boolean> {
  const volume = await readVolume(volumeName, access);
  return (
    volume !== undefined &&
    volume.metadata?.deletionTimestamp === undefined &&
    (holderOf(volume) === record || volume.spec?.claimRef?.uid === claimUid)
  );
}

/**
 * Gives a retained volume to a claim that names it. By the claim's uid: no other of its name gets it. The volume stays retained, for
 * a provisioner deletes one that it sees released.
 * @throws KubeError 409 when the volume changed meanwhile
 */
export async function bindVolume({ metadata, spec }: Claim, access: VolumeAccess): Promise<void> {
  const volume = await readVolume(spec?.volumeName, access);
  if (volume === undefined || volume.spec?.claimRef?.uid === metadata?.uid) {
    return;
  }
  const { name, namespace, uid } = metadata ?? {};
  // The version that it had names the former claim.
  const claimRef = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    name,
    namespace,
    uid,
    resourceVersion: null,
  };
  await patch(volume, { spec: { claimRef } }, access);
}

const holderOf = ({ metadata }: PersistentVolume) => metadata?.annotations?.[annotations.retainedFor];

async function readVolume(
  name: string | undefined,
  { client, signal }: VolumeAccess,
): Promise<PersistentVolume | undefined> {
  return name === undefined
    ? undefined
    : client.getOrUndefined<PersistentVolume>(resources.persistentVolumes, { name }, { signal });
}

function patchVolume(
  volume: PersistentVolume,
  { record, policy }: { record: string | null; policy: "Retain" | "Delete" },
  access: VolumeAccess,
): Promise<void> {
  const metadata = { annotations: { [annotations.retainedFor]: record } };
  return patch(volume, { metadata, spec: { persistentVolumeReclaimPolicy: policy } }, access);
}

/** Only as it was read. */
async function patch(
  { metadata }: PersistentVolume,
  change: { metadata?: object; spec: object },
  { client, signal }: VolumeAccess,
): Promise<void> {
  const { name = "", uid, resourceVersion } = metadata ?? {};
  const conditional = { ...change, metadata: { ...change.metadata, uid, resourceVersion } };
  const options = { fieldManager: fieldManagers.deletedProject, signal };
  await client.patch(resources.persistentVolumes, { name }, conditional, options);
}
