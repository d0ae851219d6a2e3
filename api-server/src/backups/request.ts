import { randomInt } from "node:crypto";
import { type Backup, backupName, labels, MANAGED_BY, newProjectId } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";
import { createBackup, listBackups } from "./cluster.ts";
import { isActive } from "./view.ts";

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
