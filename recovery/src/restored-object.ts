/** An object of a backup as it is created again. Pure. */

import { type KubernetesObject, recreatedService } from "@slipway/controller-runtime";
import { annotations, GROUP, type ProjectStatus, statusOfRecreated, withGenerations } from "@slipway/crds";

/** Uids of a backup's objects, and those of the objects that were created in their place. */
export type Uids = ReadonlyMap<string, string>;

type Json = { readonly [name: string]: unknown };
type ProjectLike = KubernetesObject & { spec: Json; status?: Json };

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** A text in which each uid of a backup is the one of the object in its place. */
export function withUids(text: string, uids: Uids): string {
  return text.replace(UUID, (uid) => uids.get(uid) ?? uid);
}

/**
 * @param backups name of the newest backup of each database that has one, by `<namespace>/<project>`: the database begins
 *   with it; another one is empty
 * @returns what is created, without a uid; its `status`, if any, is written afterwards
 */
export function restoredObject(
  saved: KubernetesObject,
  uids: Uids,
  backups: ReadonlyMap<string, string>,
): KubernetesObject {
  const ownerReferences = saved.metadata?.ownerReferences?.filter((owner) => uids.has(owner.uid));
  const owned = { ...saved, metadata: { ...saved.metadata, ownerReferences } };
  const object = JSON.parse(withUids(JSON.stringify(owned), uids)) as KubernetesObject;
  const { uid: _uid, ownerReferences: owners, ...metadata } = object.metadata ?? {};
  const restored = {
    ...object,
    metadata: { ...metadata, ...(owners?.length ? { ownerReferences: owners } : {}) },
  };
  if (object.kind === "Namespace") {
    return namespace(restored);
  }
  if (object.kind === "Service") {
    return recreatedService(restored);
  }
  if (!object.apiVersion?.startsWith(`${GROUP}/`)) {
    return restored;
  }
  const { spec, status } = restored as { spec?: unknown; status?: unknown };
  const current = {
    ...restored,
    // What is reserved for a generation is so for the first one; none was observed yet.
    ...(spec === undefined ? {} : { spec: withGenerations(spec, 1) }),
    ...(status === undefined ? {} : { status: withGenerations(status, 0) }),
  } as KubernetesObject;
  return object.kind === "Project" ? project(current as ProjectLike, backups) : current;
}

/** With its organization alone: the operator adds policies and quotas, and notes then that it has. */
function namespace({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const own = Object.entries(metadata?.labels ?? {}).filter(([name]) => !name.startsWith("kubernetes.io/"));
  return { apiVersion, kind, metadata: { name: metadata?.name, labels: Object.fromEntries(own) } };
}

/** What was observed of its pods is gone with them; its history stays. */
function project(object: ProjectLike, backups: ReadonlyMap<string, string>): KubernetesObject {
  const history: Json = statusOfRecreated((object.status ?? {}) as ProjectStatus);
  const backup = backups.get(`${object.metadata?.namespace}/${object.metadata?.name}`);
  const before = isJson(object.spec.database) ? object.spec.database : {};
  const database = {
    ...without(before, ["restoreFrom"]),
    ...(backup === undefined ? {} : { restoreFrom: { backup } }),
  };
  const spec = {
    ...without(object.spec, ["database"]),
    ...(Object.keys(database).length === 0 ? {} : { database }),
  };
  const status = {
    ...history,
    ...(isJson(history.database) ? { database: databaseStatus(history.database) } : {}),
    ...(isJson(history.job) ? { job: without(history.job, ["activeRun"]) } : {}),
  };
  // One that was being undeleted has lost what it was to be undeleted from.
  const { [annotations.undeletedFrom]: _, ...kept } = object.metadata?.annotations ?? {};
  const metadata = { ...object.metadata, ...(object.metadata?.annotations ? { annotations: kept } : {}) };
  return { ...object, metadata, spec, status } as KubernetesObject;
}

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null;

const without = (value: Json, names: readonly string[]): Json =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));

/** Where clients reach it, and as whom; not that it has been set up before. */
const ADDRESS = [
  "name",
  "username",
  "host",
  "port",
  "inside",
  "credentialsSecretRef",
  "engine",
  "driver",
  "version",
];
const databaseStatus = (status: Json): Json =>
  Object.fromEntries(Object.entries(status).filter(([name]) => ADDRESS.includes(name)));
