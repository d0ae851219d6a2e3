/** Names of what belongs to a backup. Pure. */

import { type Backup, databaseNames, labels, MANAGED_BY, organizationOfNamespace } from "@slipway/crds";

/** Claim of the volume with an organization's backups. No project's id begins so. */
export const VOLUME = "slipway-backups";

/** What is done to a backup, each by a Job of its own. */
export type Work = "dump" | "load" | "verify" | "erase";

/** A Job's name has to fit into a label: 63 characters. */
export const jobNames = {
  dump: (backup: string) => `${backup}-dump`,
  erase: (backup: string) => `${backup}-erase`,
  /** Each test has its own. @param requestedAt what requested it */
  verify: (backup: string, requestedAt: string) =>
    `${backup}-v${Math.floor(Date.parse(requestedAt) / 1_000).toString(36)}`,
  /** Of the new project. */
  load: (projectId: string) => `${projectId}-restore`,
} as const;

/** Secret with the URLs of a Job. */
export const urlsSecret = (job: string) => job;

/** Where a backup's file is below the folder of its volume. */
export const fileOf = ({ metadata, spec }: Pick<Backup, "metadata" | "spec">) =>
  `${spec.projectRef.name}/${metadata.name}.dump`;

/** Labels of a backup's Jobs, their pods and Secrets. Not a project's: its database would count them as members. */
export function workLabels(backup: string, namespace: string): Record<string, string> {
  const organization = organizationOfNamespace(namespace);
  return {
    [labels.managedBy]: MANAGED_BY,
    ...(organization ? { [labels.organization]: organization } : {}),
    [labels.backup]: backup,
  };
}

/** Where the organization's own pods find the primary. */
export function primaryHost(projectId: string, namespace: string): string {
  return `${databaseNames(projectId).main}.${namespace}.svc`;
}
