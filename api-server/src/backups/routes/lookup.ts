import { type Backup, PROJECT_ID } from "@slipway/crds";
import type { Principal } from "../../auth/principal.ts";
import { failures } from "../../errors/catalog.ts";
import type { Call } from "../../http/route.ts";
import { type ApiProject, requireType } from "../../projects/api-project.ts";
import type { Services } from "../../services.ts";
import { findBackup, listBackups, type Owner } from "../cluster.ts";
import { type BackupDefaults, backedUpTypes } from "../view.ts";

/** Finds the database, the backup and the settings that an operation on backups is about. */

type AboutBackups = Pick<Call<unknown, unknown, unknown>, "principal" | "project" | "request">;

/** Settings of backups. @throws Failure 503 where there are none */
export function requireBackups({ backups }: Pick<Services, "backups">): BackupDefaults {
  const defaults = backups();
  if (!defaults) {
    throw failures.backupsUnavailable();
  }
  return defaults;
}

/** The database of the path, which must exist. @throws Failure 400 */
export function databaseOf({ project }: { project: ApiProject }): ApiProject {
  requireType(project, backedUpTypes);
  return project;
}

/** The project of the path, which may be deleted: backups outlive it. */
export function ownerOf({ principal, request }: AboutBackups): Owner {
  const { id } = request.params as { id: string };
  return { organizationId: (principal as Principal).organizationId, projectId: id };
}

/** Its backups. @throws Failure 404 for a project that does not exist and has left none */
export async function backupsOf(call: AboutBackups, { kube }: Pick<Services, "kube">): Promise<Backup[]> {
  const owner = ownerOf(call);
  if (call.project) {
    requireType(call.project, backedUpTypes);
  } else if (!PROJECT_ID.test(owner.projectId)) {
    throw failures.projectNotFound();
  }
  const found = await listBackups(kube, owner);
  if (!call.project && found.length === 0) {
    throw failures.projectNotFound();
  }
  return found;
}

/** The backup of the path. @throws Failure 404 */
export async function backupOf(call: AboutBackups, { kube }: Pick<Services, "kube">): Promise<Backup> {
  const { backupId } = call.request.params as { backupId: string };
  const owner = ownerOf(call);
  if (call.project) {
    requireType(call.project, backedUpTypes);
  } else if (!PROJECT_ID.test(owner.projectId)) {
    throw failures.projectNotFound();
  }
  return findBackup(kube, owner, backupId).catch((error: unknown) => {
    // A caller that may not learn of the project may not learn of its backups either.
    const isMissing = !call.project && (error as { code?: string }).code === "BACKUP_NOT_FOUND";
    throw isMissing ? failures.projectNotFound() : error;
  });
}
