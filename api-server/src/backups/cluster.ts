import { randomInt } from "node:crypto";
import type { KubeClient } from "@slipway/controller-runtime";
import {
  API_VERSION,
  BACKUP_ID,
  type Backup,
  backupName,
  fieldManagers,
  labels,
  MANAGED_BY,
  newProjectId,
  organizationNamespace,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { backupResource } from "../resources.ts";
import type { Services } from "../services.ts";
import { isActive } from "./view.ts";

/**
 * Backups as they are in the cluster. They are read live: that is rare, and so every read sees what was just
 * written through any replica.
 */

const WRITE = { fieldManager: fieldManagers.api };

/** The owner of backups: a project, whether it exists or not. */
export interface Owner {
  organizationId: string;
  projectId: string;
}

/** Every backup of a project, the newest first. @throws Failure 503 */
export async function listBackups(kube: KubeClient, { organizationId, projectId }: Owner): Promise<Backup[]> {
  const namespace = organizationNamespace(organizationId);
  const labelSelector = `${labels.project}=${projectId}`;
  const found = await answered(kube.listAll<Backup>(backupResource, { namespace, labelSelector }));
  return found
    .filter(({ spec }) => spec.projectRef.name === projectId)
    .toSorted((a, b) => Date.parse(b.spec.requestedAt) - Date.parse(a.spec.requestedAt));
}

/** @throws Failure 404 when the project has no such backup, 503 */
export async function findBackup(kube: KubeClient, owner: Owner, id: string): Promise<Backup> {
  const ref = { namespace: organizationNamespace(owner.organizationId), name: id };
  const backup = BACKUP_ID.test(id)
    ? await answered(kube.getOrUndefined<Backup>(backupResource, ref))
    : undefined;
  if (backup?.spec.projectRef.name !== owner.projectId) {
    throw failures.backupNotFound(id);
  }
  return backup;
}

/** @throws Failure 503 */
export function createBackup(kube: KubeClient, backup: Omit<Backup, "apiVersion" | "kind">): Promise<Backup> {
  const whole: Backup = { apiVersion: API_VERSION, kind: "Backup", ...backup };
  return answered(kube.create<Backup>(backupResource, whole, WRITE));
}

/** @throws Failure 404 when it is deleted, 503 */
export function patchBackup(kube: KubeClient, { metadata }: Backup, spec: object): Promise<Backup> {
  const { name, namespace, uid } = metadata;
  return answered(
    kube.patch<Backup>(backupResource, { name, namespace }, { metadata: { uid }, spec }, WRITE),
    name,
  );
}

/** Begins its deletion. @throws Failure 503 */
export async function deleteBackup(kube: KubeClient, { metadata }: Backup): Promise<void> {
  const { name, namespace, uid } = metadata;
  await answered(kube.delete(backupResource, { name, namespace }, { uid }));
}

function answered<T>(call: Promise<T>, id?: string): Promise<T> {
  return withClusterErrors(call, {
    missing: id === undefined ? undefined : () => failures.backupNotFound(id),
  });
}

const DAY_MS = 24 * 60 * 60_000;

/**
 * Requests a backup now; the operator takes it in the background.
 * @param retentionDays until it expires; evaluated once the project itself allows a backup
 * @throws Failure 409 while another one is running, or the project is paused; what `retentionDays` throws
 */
export async function requestBackup(
  project: ApiProject,
  retentionDays: () => number,
  { kube, now }: Pick<Services, "kube" | "now">,
): Promise<Backup> {
  const { id, organizationId, resource } = project;
  if (resource.spec.paused) {
    throw failures.projectPaused();
  }
  const known = await listBackups(kube, { organizationId, projectId: id });
  if (known.some(isActive)) {
    throw failures.backupActive();
  }
  const days = retentionDays();
  const at = now();
  const suffix = newProjectId((below) => randomInt(below)).slice(1, 5);
  return createBackup(kube, {
    metadata: {
      name: backupName(id, at, suffix),
      namespace: resource.metadata.namespace ?? "",
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organizationId,
        [labels.project]: id,
      },
    },
    spec: {
      projectRef: { name: id },
      trigger: "manual",
      requestedAt: at.toISOString(),
      expiresAt: new Date(at.getTime() + days * DAY_MS).toISOString(),
    },
  });
}
