/** Backups on a volume: one claim in each organization's namespace, which its own pods of backups alone mount. */

import {
  controllerReference,
  isAlreadyExists,
  isNamespaceTerminating,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import { type Backup, fieldManagers } from "@slipway/crds";
import { backupResource } from "../resources.ts";
import { eraseJob } from "./job.ts";
import { fileOf, jobNames, VOLUME, workLabels } from "./names.ts";
import type { BackupSettings } from "./settings.ts";
import type { BackupStore } from "./store.ts";

/** In which a file must be removed; then it is tried again. */
const ERASE_SECONDS = 300;

interface EraseJob extends KubernetesObject {
  status?: { conditions?: { type: string; status: string }[] };
}

export function volumeStore(client: KubeClient, settings: () => BackupSettings): BackupStore {
  const place = (backup: Backup) => ({ kind: "volume", file: fileOf(backup) }) as const;
  return {
    place: (backup) => ({ location: `volume://${VOLUME}/${fileOf(backup)}` }),
    has: ({ metadata: { namespace = "" } }, signal) => hasVolume(client, namespace, signal),
    async openWrite({ namespace }, backup, _size, signal) {
      await ensureClaim(client, settings(), backup.metadata.name, namespace, signal);
      return place(backup);
    },
    openRead: (_job, backup) => Promise.resolve(place(backup)),
    commit: () => Promise.resolve(undefined),
    erase: (backup, signal) => erase(client, settings(), backup, signal),
  };
}

/** The content of an existing volume is unknown without a pod; it is deleted with its organization's namespace. */
async function hasVolume(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const claim = { namespace, name: VOLUME };
  if (await client.getOrUndefined(resources.persistentVolumeClaims, claim, { signal })) {
    return undefined;
  }
  const owner = await client.getOrUndefined(resources.namespaces, { name: namespace }, { signal });
  return !owner || owner.metadata?.deletionTimestamp ? undefined : false;
}

/** Makes the claim once; later changes of it are the platform's administrator's. */
async function ensureClaim(
  client: KubeClient,
  { volume: { size, storageClass, accessMode } }: BackupSettings,
  backup: string,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const there = await client.getOrUndefined(
    resources.persistentVolumeClaims,
    { namespace, name: VOLUME },
    { signal },
  );
  if (there) {
    return;
  }
  const { "slipway.dev/backup": _, ...labels } = workLabels(backup, namespace);
  const claim = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: VOLUME, namespace, labels },
    spec: {
      accessModes: [accessMode],
      ...(storageClass ? { storageClassName: storageClass } : {}),
      resources: { requests: { storage: size } },
    },
  };
  await client
    .create(resources.persistentVolumeClaims, claim, { fieldManager: fieldManagers.backup, signal })
    .catch((error: unknown) => {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    });
}

const ERASING = "What is stored is being removed.";

/** With the namespace the volume goes, too. */
async function erase(client: KubeClient, settings: BackupSettings, backup: Backup, signal: AbortSignal) {
  const { name, namespace = "" } = backup.metadata;
  const claim = { namespace, name: VOLUME };
  if (!(await client.getOrUndefined(resources.persistentVolumeClaims, claim, { signal }))) {
    return undefined;
  }
  const ref = { namespace, name: jobNames.erase(name) };
  const job = await client.getOrUndefined<EraseJob>(resources.jobs, ref, { signal });
  if (!job) {
    const wanted = eraseJob({
      work: "erase",
      name: ref.name,
      namespace,
      backup: name,
      owner: controllerReference(backup, backupResource),
      agentImage: settings.image,
      place: { kind: "volume", file: fileOf(backup) },
      deadlineSeconds: ERASE_SECONDS,
    });
    try {
      await client.create(resources.jobs, wanted, { fieldManager: fieldManagers.backup, signal });
    } catch (error) {
      if (isNamespaceTerminating(error)) {
        return undefined;
      }
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
    return ERASING;
  }
  const ended = job.status?.conditions?.find(({ status, type }) => status === "True" && isEnd(type));
  if (ended?.type === "Complete") {
    return undefined;
  }
  if (ended) {
    await client.delete(resources.jobs, ref, { uid: job.metadata?.uid, signal });
  }
  return ERASING;
}

const isEnd = (type: string) => type === "Complete" || type === "Failed";
