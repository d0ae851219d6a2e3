/** Plays the controllers of volumes on a cluster that has none: binder, protection of claims, and a provisioner that deletes. */

import {
  isConflict,
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";

export interface TestClaim extends KubernetesObject {
  spec: { volumeName?: string; accessModes: string[]; resources: { requests: { storage: string } } };
  status?: { phase?: string };
}

export interface TestVolume extends KubernetesObject {
  spec: {
    persistentVolumeReclaimPolicy: string;
    claimRef?: { name: string; namespace: string; uid?: string };
    [field: string]: unknown;
  };
  status?: { phase?: string };
}

const claims = resources.persistentVolumeClaims;
const volumes = resources.persistentVolumes;

/** Makes a volume for a claim that exists, and binds both. */
export async function provision(
  client: KubeClient,
  claim: { namespace: string; name: string },
): Promise<string> {
  const live = await client.get<TestClaim>(claims, claim);
  const name = `pvc-${live.metadata?.uid}`;
  const { accessModes } = live.spec;
  await client.create<TestVolume>(volumes, {
    metadata: { name },
    spec: {
      accessModes,
      capacity: live.spec.resources.requests,
      persistentVolumeReclaimPolicy: "Delete",
      hostPath: { path: `/tmp/${name}` },
      claimRef: { ...claim, uid: live.metadata?.uid },
    },
  });
  await client.patch(claims, claim, { spec: { volumeName: name } });
  await setPhase(client, live, { phase: "Bound", capacity: live.spec.resources.requests, accessModes });
  await client.patch(volumes, { name }, { status: { phase: "Bound" } }, { subresource: "status" });
  return name;
}

/** One pass of all of them over one namespace. */
export async function reconcileVolumes(client: KubeClient, namespace: string): Promise<void> {
  const live = await client.listAll<TestClaim>(claims, { namespace });
  for (const claim of live) {
    if (claim.metadata?.deletionTimestamp) {
      await quietly(
        client.patch(
          claims,
          { namespace, name: claim.metadata.name ?? "" },
          { metadata: { finalizers: null } },
        ),
      );
    }
  }
  for (const volume of await client.listAll<TestVolume>(volumes)) {
    await quietly(reconcileVolume(client, volume, namespace));
  }
}

async function reconcileVolume(client: KubeClient, volume: TestVolume, namespace: string): Promise<void> {
  const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec;
  const ref = { name: volume.metadata?.name ?? "" };
  if (claimRef?.namespace !== namespace) {
    return;
  }
  const claim = await client.getOrUndefined<TestClaim>(claims, { namespace, name: claimRef.name });
  if (claim?.metadata?.uid !== claimRef.uid) {
    if (policy === "Delete") {
      await client.patch(volumes, ref, { metadata: { finalizers: null } });
      await client.delete(volumes, ref);
    } else if (volume.status?.phase !== "Released") {
      await client.patch(volumes, ref, { status: { phase: "Released" } }, { subresource: "status" });
    }
    return;
  }
  if (claim?.spec.volumeName === ref.name && claim.status?.phase !== "Bound") {
    await client.patch(volumes, ref, { status: { phase: "Bound" } }, { subresource: "status" });
    await setPhase(client, claim, { phase: "Bound", capacity: volume.spec.capacity });
  }
}

function setPhase(client: KubeClient, { metadata }: TestClaim, status: object): Promise<unknown> {
  const ref = { namespace: metadata?.namespace, name: metadata?.name ?? "" };
  return client.patch(claims, ref, { status }, { subresource: "status" });
}

/** What changed, or is gone by now, is for the next pass. */
async function quietly(write: Promise<unknown>): Promise<void> {
  await write.catch((error: unknown) => {
    if (!isNotFound(error) && !isConflict(error)) {
      throw error;
    }
  });
}
