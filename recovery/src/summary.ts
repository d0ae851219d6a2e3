/** What a backup has, as a person wants to know it. Pure. */

import type { KubernetesObject } from "@slipway/controller-runtime";

export interface Restorable {
  /** Objects by kind. */
  objects: Record<string, number>;
  /** Ids of databases that come back with their newest backup. */
  databases: string[];
  /** Ids of databases that come back empty, since no backup of them is in a bucket. */
  emptyDatabases: string[];
  /** Ids of applications whose volumes come back empty. */
  emptyVolumes: string[];
  /** Ids of applications that need a new build if the registry of builds is lost, too. */
  built: string[];
}

type ProjectLike = KubernetesObject & {
  spec?: { type?: string; storage?: { persistent?: boolean } };
  status?: { build?: { publishedBuild?: string } };
};
type BackupLike = KubernetesObject & {
  spec?: { projectRef?: { name?: string }; requestedAt?: string };
};

/** The newest backup of each database, by `<namespace>/<project>`. */
export function newestBackups() {
  const newest = new Map<string, { name: string; at: string }>();
  return {
    add({ kind, metadata, spec }: BackupLike): void {
      const { projectRef, requestedAt = "" } = spec ?? {};
      const project = `${metadata?.namespace}/${projectRef?.name}`;
      if (kind === "Backup" && requestedAt > (newest.get(project)?.at ?? "")) {
        newest.set(project, { name: metadata?.name ?? "", at: requestedAt });
      }
    },
    names: (): ReadonlyMap<string, string> => new Map([...newest].map(([key, { name }]) => [key, name])),
  };
}

/** Collects what an archive has, object by object. */
export function summaryOf() {
  const objects: Record<string, number> = {};
  const databases: { key: string; id: string }[] = [];
  const emptyVolumes: string[] = [];
  const built: string[] = [];
  return {
    add({ kind = "", metadata, spec, status }: ProjectLike): void {
      objects[kind] = (objects[kind] ?? 0) + 1;
      const id = metadata?.name ?? "";
      if (kind !== "Project" || spec?.type === "job") {
        return;
      }
      if (spec?.type !== "http" && spec?.type !== "worker") {
        databases.push({ key: `${metadata?.namespace}/${id}`, id });
        return;
      }
      if (spec.storage?.persistent) {
        emptyVolumes.push(id);
      }
      if (status?.build?.publishedBuild !== undefined) {
        built.push(id);
      }
    },
    result(backups: ReadonlyMap<string, string>): Restorable {
      return {
        objects,
        databases: databases.filter(({ key }) => backups.has(key)).map(({ id }) => id),
        emptyDatabases: databases.filter(({ key }) => !backups.has(key)).map(({ id }) => id),
        emptyVolumes,
        built,
      };
    },
  };
}
